#include "testing/programs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"

/* -- programs -------------------------------------------------------------------------------- */

const char *program_directory(void) {
    static char path[1024];
    if (path[0]) return path;
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(length > 0);
    path[length] = 0;
    for (int up = 0; up < 3; up++) *strrchr(path, '/') = 0; /* BUILD/tests/record/test_x */
    strcat(path, "/bin");
    char statplot[1100];
    snprintf(statplot, sizeof statplot, "%s/statplot", path);
    if (access(statplot, X_OK) != 0) fail_msg("%s is not built: make all first", statplot);
    return path;
}

bool have_gnuplot(void) {
    if (system("command -v gnuplot >/dev/null 2>&1") == 0) return true;
    print_message("skipped: gnuplot not found\n");
    return false;
}

const char *program_file(const char *name) {
    static char path[4][1024];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", check_temporary(), name);
    return to;
}

void program_write(const char *name, const char *text) {
    check_write(program_file(name), text);
}

static char *read_whole(const char *path) {
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, 0, in) < 0) {
        free(text);
        text = calloc(1, 1);
    }
    fclose(in);
    assert_non_null(text);
    return text;
}

program_result program_run(const char *format, ...) {
    char command[4096], line[10240];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    char checkout[1024];
    assert_non_null(getcwd(checkout, sizeof checkout - 16));
    snprintf(line, sizeof line,
             "export TMPDIR=. PATH='%s':\"$PATH\" STATREC_PLOTS='%s/plots' "
             "STATREC_SAMPLES='%s/sample_runs' STATREC_PRESETS='%s/share/presets' && cd '%s' && "
             "{ %s\n} >out 2>err",
             program_directory(), checkout, checkout, checkout, check_temporary(), command);
    const int state = system(line);
    return (program_result){
        .status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state),
        .out = read_whole(program_file("out")),
        .err = read_whole(program_file("err")),
    };
}

void program_free(program_result *r) {
    free(r->out);
    free(r->err);
}

/* -- tables ---------------------------------------------------------------------------------- */

static const char *skip_line(const char *at) {
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

static const char *header_of(const char *table) {
    while (*table == '#') table = skip_line(table);
    return table;
}

static bool copy_cell(const char *line, int column, char *cell, size_t size) {
    const char *end = line + strcspn(line, "\n");
    for (; column > 0; column--) {
        line = memchr(line, '\t', (size_t)(end - line));
        if (!line++) return false;
    }
    snprintf(cell, size, "%.*s", (int)strcspn(line, "\t\n"), line);
    return line < end;
}

const char *table_cell(const char *table, int row, const char *column) {
    static char cell[4096];
    const char *header = header_of(table), *line = header;
    for (int i = 0; i <= row; i++) line = skip_line(line);
    for (int i = 0; copy_cell(header, i, cell, sizeof cell); i++)
        if (strcmp(cell, column) == 0)
            return *line && copy_cell(line, i, cell, sizeof cell) ? cell : NULL;
    return NULL;
}

double table_real(const char *table, int row, const char *column) {
    const char *cell = table_cell(table, row, column);
    if (!cell) fail_msg("no row %d or no column %s in:\n%s", row, column, table);
    return strtod(cell, NULL);
}

int table_rows(const char *table) {
    int rows = 0;
    for (const char *at = skip_line(header_of(table)); *at; at = skip_line(at)) rows++;
    return rows;
}

void check_cell(const program_result *r, int row, const char *column, double want) {
    const double got = table_real(r->out, row, column);
    check_near_double(column, &got, &want, 1, 1e-6, 1e-12);
}

void check_text(const program_result *r, int row, const char *column, const char *want) {
    const char *cell = table_cell(r->out, row, column);
    if (!cell) fail_msg("no cell %s in row %d of:\n%s", column, row, r->out);
    assert_string_equal(cell, want);
}

/* -- run files ------------------------------------------------------------------------------- */

sr_options run_options(void) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.program = "test";
    o.version = "1";
    o.model = "toy";
    o.data = "numbers";
    o.task = "test";
    o.seed = 1;
    o.force = true;
    o.started = 1;
    return o;
}

sr_recorder *run_create(const char *path, sr_options o) {
    sr_failure why = {0};
    sr_recorder *r = sr_create(path, &o, &why);
    if (!r) fail_msg("%s", why.text);
    return r;
}

static int add_site(sr_recorder *r, const sr_site *site) {
    const int number = sr_add_site(r, site);
    if (number < 0) fail_msg("%s", sr_failed(r)->text);
    return number;
}

int run_add_bn(sr_recorder *r, const char *name, int width, int depth, double eps) {
    return add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = name,
                                  .norm = "bn",
                                  .kind = "encoder",
                                  .family = SR_FAMILY_SIGMA,
                                  .width = width,
                                  .depth = depth,
                                  .eps = eps,
                                  .alpha = 0.9});
}

int run_add_ln(sr_recorder *r, const char *name, int width, int depth, double eps) {
    return add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = name,
                                  .norm = "ln",
                                  .kind = "encoder",
                                  .family = SR_FAMILY_ROW,
                                  .width = width,
                                  .depth = depth,
                                  .eps = eps,
                                  .alpha = NAN});
}

void run_end_step(sr_recorder *r, int step) {
    const sr_step row = {.size = sizeof(sr_step), step, 10, step, 1, 0.1, 1};
    if (sr_end_step(r, &row) != SR_OK) fail_msg("%s", sr_failed(r)->text);
}

void run_finish(sr_recorder *r) {
    sr_failure why = {0};
    const sr_finish f = {.size = sizeof(sr_finish), .status = "complete"};
    check_ok(sr_close(r, &f, &why), &why);
}

void run_add_metrics(sr_recorder *r) {
    sr_add_metric(r, "bleu", "percent", "BLEU of the validation set", SR_BETTER_MORE);
    sr_add_metric(r, "valid_accuracy", "percent", "targets found", SR_BETTER_MORE);
    sr_add_metric(r, "valid_ppl", "1", "exp(valid_nll)", SR_BETTER_LESS);
    sr_add_metric(r, "valid_loss", "nats per token", "validation loss", SR_BETTER_LESS);
    sr_add_metric(r, "valid_nll", "nats per token", "the same without smoothing", SR_BETTER_LESS);
    sr_add_metric(r, "valid_loss_batch", "nats per token", "by batches", SR_BETTER_LESS);
}

void run_put_eval(sr_recorder *r, int64_t step, double epoch, const char *names, ...) {
    va_list values;
    va_start(values, names);
    sr_begin_eval(r, step, epoch);
    for (size_t length; (length = strcspn(names, " ")) > 0;) {
        char name[SR_NAME_SIZE];
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        sr_put_metric(r, name, va_arg(values, double));
        names += length + (names[length] == ' ');
    }
    va_end(values);
    if (sr_end_eval(r) != SR_OK) fail_msg("%s", sr_failed(r)->text);
}

static sr_recorder *create(const char *path, const char *model, const char *data, uint64_t seed) {
    sr_options o = run_options();
    o.model = model;
    o.data = data;
    o.seed = seed;
    o.vectors_every = 1;
    o.flush_seconds = 1e9;
    return run_create(path, o);
}

static void put(sr_recorder *r, int site, sr_vector which, double a, double b) {
    const double value[] = {a, b};
    assert_int_equal(sr_put_vector(r, site, which, value), SR_OK);
}

static void end_step(sr_recorder *r, const sr_step *row) {
    if (sr_end_step(r, row) != SR_OK) fail_msg("%s", sr_failed(r)->text);
}

static void put_small_step(sr_recorder *r, int step) {
    static const double scale[] = {1, 2, 3, 4, 10, NAN};
    const double k = scale[step - 1];
    sr_put_rows(r, 0, 4);
    put(r, 0, SR_mu_B, 3 * k, 4 * k);
    put(r, 0, SR_mu, 0, 0);
    put(r, 0, SR_sigma2_B, 3, 8);
    put(r, 0, SR_sigma2, 0, 4);
    put(r, 0, SR_psi2_B, 3 + 9 * k * k, 8 + 16 * k * k);
    put(r, 0, SR_gamma, 1, 2);
    put(r, 0, SR_sum_g, 4, 6);
    put(r, 0, SR_sum_gx, 8, -6);
    sr_put_rows(r, 1, 4);
    put(r, 1, SR_mu_B, 0, 0);
    put(r, 1, SR_sigma2_B, 4, 0);
    put(r, 1, SR_psi2_B, 4, 0);
    put(r, 1, SR_psi2, 1, 0);
    put(r, 1, SR_gamma, 3, 0);
    put(r, 1, SR_sum_g, 1, 0);
    put(r, 1, SR_sum_gx, 8, 0);
    sr_put_rows(r, 2, 4);
    sr_put_scalar(r, 2, SR_SCALAR_row_grad_mean, 0);
    sr_put_scalar(r, 2, SR_SCALAR_row_grad_var, k);
}

void write_small_run(const char *path, int up_to, bool whole) {
    sr_recorder *r = create(path, "toy", "numbers", 7);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "stem",
                              .norm = "bn",
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = 2,
                              .depth = 1,
                              .eps = 1,
                              .alpha = 0.9});
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "mid",
                              .norm = "pnv",
                              .kind = "conv",
                              .family = SR_FAMILY_PSI,
                              .width = 1,
                              .depth = 2,
                              .eps = 0,
                              .alpha = 0.9});
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "top",
                              .norm = "ln",
                              .uses = "mu,sigma2",
                              .kind = "conv",
                              .family = SR_FAMILY_ROW,
                              .width = 3,
                              .depth = 3,
                              .eps = 1e-5,
                              .alpha = NAN});
    assert_int_equal(sr_add_embedding(r, "word", 4, 2), SR_OK);
    assert_int_equal(sr_set_embedding_method(r, "word", "by hand"), SR_OK);
    run_add_metrics(r);
    for (int step = 1; step <= up_to; step++) {
        sr_begin_step(r, step);
        put_small_step(r, step);
        const sr_step row = {.size = sizeof(sr_step), step, 10, 0.5 * step, 6.0 / step, 0.1, 1};
        end_step(r, &row);
    }
    run_put_eval(r, 3, 1.5, "valid_loss valid_nll valid_ppl valid_accuracy", 2.0, 1.0, exp(1),
                 50.0);
    sr_put_singular_values(r, "word", 3, (const double[]){4, 1});
    sr_put_singular_values(r, "word", 5, (const double[]){6, 3});
    if (whole) {
        run_finish(r);
        return;
    }
    assert_int_equal(sr_flush(r), SR_OK);
    sr_abandon(r);
}

void write_ln_run(const char *path) {
    sr_recorder *r = create(path, "toy", "numbers", 7);
    run_add_ln(r, "encoder.0.norm1", 2, 1, 1e-5);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        const sr_step row = {.size = sizeof(sr_step), step, 10, step, 1, 0.1, 1};
        end_step(r, &row);
    }
    run_finish(r);
}

/* Numerical Recipes' quick generator: the same noise on every machine. */
static double noise(uint32_t *state) {
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (double)(*state >> 8) / 16777216.0 - 0.5;
    }
    return sum * 1.7;
}

static void put_noisy_step(sr_recorder *r, const noisy_run *run, int step, uint32_t *state) {
    double mu_B[512], zero[512] = {0}, sigma2_B[512], one[512], sum_g[512], sum_gx[512];
    const double t = (double)step / run->steps;
    double scale = run->base * (0.4 + 1.2 * exp(-4 * t)) * exp(0.4 * noise(state));
    if (1000 * fabs(noise(state)) < run->spikes) scale *= 20;
    for (int k = 0; k < run->width; k++) {
        mu_B[k] = scale * noise(state);
        sigma2_B[k] = 1 + 0.9 * tanh(5 * scale * noise(state));
        one[k] = 1;
        sum_g[k] = scale * noise(state);
        sum_gx[k] = 0.3 * scale * noise(state);
    }
    sr_put_rows(r, 0, 64);
    sr_put_scalar(r, 0, SR_SCALAR_dx_norm, 100 * run->base);
    sr_put_scalar(r, 0, SR_SCALAR_direct_norm, 101 * run->base);
    sr_put_vector(r, 0, SR_mu_B, mu_B);
    sr_put_vector(r, 0, SR_mu, zero);
    sr_put_vector(r, 0, SR_sigma2_B, sigma2_B);
    sr_put_vector(r, 0, SR_sigma2, one);
    sr_put_vector(r, 0, SR_gamma, one);
    sr_put_vector(r, 0, SR_sum_g, sum_g);
    sr_put_vector(r, 0, SR_sum_gx, sum_gx);
    sr_put_rows(r, 1, 64);
    sr_put_vector(r, 1, SR_psi2_B, sigma2_B);
    sr_put_vector(r, 1, SR_psi2, one);
    sr_put_vector(r, 1, SR_gamma, one);
    sr_put_vector(r, 1, SR_sum_gx, sum_gx);
}

void write_noisy_run(const noisy_run *run) {
    sr_recorder *r = create(run->path, run->model, run->data, 1);
    uint32_t state = 42;
    assert_true(run->width <= 512);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = run->site,
                              .norm = run->norm,
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = run->width,
                              .depth = 1,
                              .eps = 1e-5,
                              .alpha = 0.9});
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "late",
                              .norm = "pnv",
                              .kind = "conv",
                              .family = SR_FAMILY_PSI,
                              .width = run->width,
                              .depth = 2,
                              .eps = 1e-5,
                              .alpha = 0.9});
    assert_int_equal(sr_add_embedding(r, "word", 9, 3), SR_OK);
    run_add_metrics(r);
    for (int step = 1; step <= run->steps; step++) {
        sr_begin_step(r, step);
        put_noisy_step(r, run, step, &state);
        const double t = (double)step / run->steps;
        const sr_step row = {.size = sizeof(sr_step),
                             step,
                             64,
                             10 * t,
                             2 * exp(-2 * t) + 0.1 * noise(&state),
                             0.1,
                             1};
        end_step(r, &row);
        if (step % (run->steps / 10) == 0) {
            const double loss = 2.1 * exp(-2 * t);
            run_put_eval(r, step, 10 * t,
                         "valid_loss valid_nll valid_ppl valid_accuracy valid_loss_batch", loss,
                         loss, exp(loss), 90 - 50 * loss, 0.9 * loss);
        }
    }
    sr_put_singular_values(r, "word", run->steps, (const double[]){5, 2, 1});
    run_finish(r);
}
