/* Writes the gnuplot script, runs gnuplot, and moves the figure to its place.
 *
 * The script, style.gp, the template and the data files lie in one directory and name each other by
 * file name only. gnuplot runs there, so it reads no path of the user's. Texts from run files are
 * in single quotes, because gnuplot runs backticks in double quotes. gnuplot exits 0 after most
 * errors, so anything on its stderr is a failure.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/runs/run_metrics.h"
#include "plot/labels/plot_labels.h"
#include "plot/plot_curves.h"
#include "plot/plot_gnuplot.h"
#include "plot/plot_process.h"
#include "plot/plot_reuse.h"
#include "plot/template/plot_controls.h"
#include "plot/template/plot_files.h"
#include "plot/template/plot_published.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* Figures take one or two, figures of the largest reports a few. The limit protects against
   unexpected run files. */
enum { GNUPLOT_SECONDS = 60 };

/* -- the script ------------------------------------------------------------------------------ */

static const char *const figure_file[] = {"figure.pdf", "figure.svg", "figure.png", "figure.txt"};

static int screen_size(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    const int size = text ? atoi(text) : 0;
    return size >= 40 && size <= 1000 ? size : otherwise;
}

static bool terminal_draws(void) {
    const char *term = getenv("TERM");
    if (!term || !isatty(STDOUT_FILENO)) return false;
    return strstr(term, "sixel") || strstr(term, "mlterm") || strncmp(term, "foot", 4) == 0;
}

/* Scales the figure so that 8 points print as 8 points and a line of width 1 as one point. The
 * cairo terminals take a point for 1/54 inch and a pdf line for half a point. svg gets 96 units to
 * the inch, png 300 dots. A legend of several rows makes the figure higher (style.gp), so the
 * terminal is a function of the height. */
static void write_terminal(const plot_job *job, FILE *out) {
    const double w = job->template->width;
    const char *font = "font 'Helvetica,8'";
    fputs("terminal(h) = sprintf(\"set terminal ", out);
    switch (job->format) {
    case PLOT_PDF:
        fprintf(out, "pdfcairo size %gin,%%gin %s fontscale 0.75 linewidth 2 pointscale 0.7", w,
                font);
        break;
    case PLOT_SVG:
        fprintf(out, "svg size %.0f,%%.0f %s fontscale 1.3333 linewidth 1.3333", 96 * w, font);
        break;
    case PLOT_PNG:
        fprintf(out, "pngcairo size %.0f,%%.0f %s fontscale 3.125 linewidth 4.1667 pointscale 3",
                300 * w, font);
        break;
    case PLOT_SCREEN:
        if (terminal_draws())
            fprintf(out, "sixelgd size %.0f,%%.0f truecolor", 130 * w);
        else
            fprintf(out, "dumb size %d,%d enhanced", screen_size("COLUMNS", 80),
                    screen_size("LINES", 40));
        break;
    }
    static const int dots[] = {1, 96, 300, 130}; /* per inch of height */
    fprintf(out, "; set output '%s'\", %d * h)\neval terminal(%g)\n", figure_file[job->format],
            dots[job->format], job->template->height);
}

/* Unit of the validation loss; "nats" unless the run declares another. */
static const char *loss_unit(const plot_run *run) {
    const sr_run_metric *m = metric_named(run->file, "valid_loss", strlen("valid_loss"));
    return m && strncmp(m->unit, "nats", 4) != 0 ? m->unit : "nats";
}

static void write_runs(const plot_run *run, const plot_labels *l, FILE *out) {
    fprintf(out, "runs = %d\narray run_label[runs]\narray run_full[runs]\n", l->runs);
    fputs("array run_norm[runs]\narray run_task[runs]\narray run_uses[runs]\narray "
          "run_startup[runs]\narray run_loss_unit[runs]\n",
          out);
    for (int i = 0; i < l->runs; i++) {
        plot_assign(out, loss_unit(&run[i]), "run_loss_unit[%d]", i + 1);
        plot_assign(out, l->label[i], "run_label[%d]", i + 1);
        plot_assign(out, l->full[i], "run_full[%d]", i + 1);
        plot_assign(out, run[i].text[RUN_NORM], "run_norm[%d]", i + 1);
        plot_assign(out, run[i].task, "run_task[%d]", i + 1);
        plot_assign(out, run[i].uses, "run_uses[%d]", i + 1);
        fprintf(out, "run_startup[%d] = %.6g\n", i + 1, run[i].startup);
    }
}

static bool is_identifier(const char *text) {
    return text[0] &&
           !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")];
}

/* Columns of (low, median, high) of one value, which begin at `column`. */
static void write_value(FILE *out, const char *table, const char *value, int column, int finite) {
    fprintf(out, "%s_%s_low = %d\n", table, value, column);
    fprintf(out, "%s_%s = %d\n", table, value, column + 1);
    fprintf(out, "%s_%s_high = %d\n", table, value, column + 2);
    fprintf(out, "%s_%s_finite = %d\n", table, value, finite);
}

/* Writes a value for the end of an axis; 1 without one, so that the axis stays usable. A user's
 * column gets a number only: its name may clash with a variable. */
static void write_end(FILE *out, const plot_table *t, int i, const char *which, double value) {
    if (isnan(value)) value = 1;
    if (!t->open[i]) fprintf(out, "%s_%s_%s = %.9g\n", t->name, t->y[i], which, value);
    fprintf(out, "%s_y%d_%s = %.9g\n", t->name, i + 1, which, value);
}

static void write_columns(const plot_data *d, int runs, FILE *out) {
    const plot_table *t = d->table;
    for (int i = 0; i < d->columns; i++)
        if (is_identifier(d->column[i])) fprintf(out, "%s_%s = %d\n", t->name, d->column[i], i + 1);
    if (!t->curves && d->run) {
        fprintf(out, "array %s_left_out[runs]\n", t->name);
        for (int i = 0; i < runs; i++)
            plot_assign(out, d->left_out[i], "%s_left_out[%d]", t->name, i + 1);
    }
    if (!t->curves) return;
    int64_t rows = 0;
    for (int i = 0; i < d->curves; i++)
        if (d->curve[i].rows > rows) rows = d->curve[i].rows;
    /* A row that is copied has the x where its step ends, one of a bucket has its middle. */
    fprintf(out, "%s_x_is_end = %d\n", t->name, rows <= t->buckets);
    if (rows > t->buckets) rows = t->buckets;
    fprintf(out, "%s_over = '%s'\n", t->name, d->x);
    fprintf(out, "%s_x = 1\n%s_rows = %lld\n", t->name, t->name, (long long)rows);
    for (int i = 0; i < t->values; i++) {
        char number[16];
        snprintf(number, sizeof number, "y%d", i + 1);
        if (!t->open[i]) write_value(out, t->name, t->y[i], 3 * i + 2, d->finite[i]);
        write_value(out, t->name, number, 3 * i + 2, d->finite[i]);
        write_end(out, t, i, "least", d->least[i]);
        write_end(out, t, i, "positive", d->positive[i]);
        write_end(out, t, i, "largest", d->largest[i]);
    }
}

static void write_data(const plot_job *job, const plot_data *d, FILE *out) {
    const char *name = d->table->name;
    const int capacity = d->curves ? d->curves : 1;
    fprintf(out, "%s = '%s.dat'\n%s_curves = %d\n", name, name, name, d->curves);
    fprintf(out, "array %s_run[%d]\narray %s_key[%d]\n", name, capacity, name, capacity);
    fprintf(out, "array %s_observed[%d]\narray %s_depth[%d]\n", name, capacity, name, capacity);
    for (int i = 0; i < d->curves; i++) {
        const plot_curve *c = &d->curve[i];
        const plot_run *run = c->run ? &job->run[c->run - 1] : NULL;
        fprintf(out, "%s_run[%d] = %d\n", name, i + 1, c->run);
        plot_assign(out, c->key, "%s_key[%d]", name, i + 1);
        fprintf(out, "%s_observed[%d] = %d\n", name, i + 1,
                run && plot_only_observed(d->table, run, c->run, c->site));
        const int64_t depth = run ? plot_site_depth(run, c->site) : -1;
        fprintf(out, "%s_depth[%d] = %lld\n", name, i + 1, (long long)depth);
    }
    write_columns(d, job->labels->runs, out);
}

enum { LOOKS = 24 }; /* line styles of style.gp */

/* A run has the same look in all figures of a report; the other looks follow. */
static void write_looks(const plot_job *job, FILE *out) {
    bool used[LOOKS] = {false};
    int free = 0;
    fprintf(out, "array line_look[%d]\n", LOOKS);
    for (int i = 0; i < LOOKS; i++) {
        const bool run = i < job->labels->runs;
        int look = run ? job->run[i].look % LOOKS : free;
        while (used[look]) look = free++;
        used[look] = true;
        fprintf(out, "line_look[%d] = %d\n", i + 1, look + 1);
    }
}

static sr_status write_script(const plot_job *job, sr_failure *why) {
    char path[2 * PLOT_PATH];
    snprintf(path, sizeof path, "%s/figure.gp", job->directory);
    FILE *out = fopen(path, "w");
    if (!out) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    fputs("# written by statplot: `gnuplot figure.gp` in this directory draws the figure\n", out);
    write_terminal(job, out);
    fprintf(out, "figure_width = %g\nfigure_height = %g\n", job->template->width,
            job->template->height);
    plot_controls_write(out, job->template, job->controls);
    write_looks(job, out);
    write_runs(job->run, job->labels, out);
    plot_assign(out, job->labels->shared, "shared");
    plot_assign(out, job->template->site, "site");
    plot_assign(out, job->template->stat, "stat");
    fprintf(out, "stat_own = %d\n", job->template->stat_own);
    plot_assign(out, job->template->stat_unit, "stat_unit");
    plot_assign(out, job->template->metric, "metric");
    plot_assign(out, job->template->step, "step");
    for (int i = 0; i < job->template->words; i++)
        plot_assign(out, job->template->word[i].value, "%s", job->template->word[i].name);
    plot_published_write(job->published, job->template, out);
    int entries = job->labels->runs + job->published->rows;
    for (int i = 0; i < job->template->tables; i++) {
        write_data(job, &job->data[i], out);
        entries += job->data[i].curves;
    }
    fprintf(out, "entries = %d\n", entries);
    fputs("load 'style.gp'\nload 'template.gp'\nunset output\n", out);
    const bool bad = ferror(out) != 0;
    if (fclose(out) == 0 && !bad) return SR_OK;
    return sr_fail(why, SR_IO, "%s: cannot write: %s", path, strerror(errno));
}

/* -- files ----------------------------------------------------------------------------------- */

static sr_status copy_stream(FILE *in, FILE *out, const char *from, const char *to,
                             sr_failure *why) {
    char block[65536];
    size_t size;
    while ((size = fread(block, 1, sizeof block, in)) > 0)
        if (fwrite(block, 1, size, out) != size)
            return sr_fail(why, SR_IO, "%s: cannot write: %s", to, strerror(errno));
    return ferror(in) ? sr_fail(why, SR_IO, "%s: cannot read: %s", from, strerror(errno)) : SR_OK;
}

static sr_status copy_file(const char *from, const char *to, sr_failure *why) {
    FILE *in = fopen(from, "r");
    if (!in) return sr_fail(why, SR_IO, "%s: %s", from, strerror(errno));
    FILE *out = fopen(to, "w");
    sr_status status = out ? copy_stream(in, out, from, to, why)
                           : sr_fail(why, SR_IO, "%s: %s", to, strerror(errno));
    if (out && fclose(out) != 0 && status == SR_OK)
        status = sr_fail(why, SR_IO, "%s: cannot write: %s", to, strerror(errno));
    fclose(in);
    return status;
}

/* style.gp of the template's own directory, else of the template directories. */
static sr_status copy_style(const plot_job *job, sr_failure *why) {
    char from[2 * PLOT_PATH], to[2 * PLOT_PATH], directory[PLOT_PATH];
    snprintf(to, sizeof to, "%s/style.gp", job->directory);
    snprintf(from, sizeof from, "%s", job->template->path);
    char *slash = strrchr(from, '/');
    snprintf(slash ? slash + 1 : from, 16, "style.gp");
    for (int i = 0; access(from, R_OK) != 0; i++) {
        if (!plot_directory(i, directory)) return sr_fail(why, SR_IO, "cannot find style.gp");
        snprintf(from, sizeof from, "%s/style.gp", directory);
    }
    return copy_file(from, to, why);
}

/* cairo stamps the time into a PDF; the same run file shall give the same bytes. Spaces keep the
 * offsets of the file's table right. */
static sr_status remove_date(const char *path, sr_failure *why) {
    static const char mark[] = "/CreationDate (";
    FILE *f = fopen(path, "r+");
    if (!f) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    size_t matched = 0;
    for (int c; (c = getc(f)) != EOF && matched < sizeof mark - 1;)
        matched = c == mark[matched] ? matched + 1 : c == mark[0];
    bool good = !ferror(f);
    if (matched == sizeof mark - 1) {
        /* one byte after the mark was read */
        long at = ftell(f) - (long)sizeof mark, length = (long)sizeof mark;
        good = at >= 0 && fseek(f, at + length - 1, SEEK_SET) == 0;
        for (int c; good && (c = getc(f)) != ')' && c != EOF;) length++;
        good = good && fseek(f, at, SEEK_SET) == 0;
        for (long i = 0; good && i < length; i++) good = putc(' ', f) != EOF;
    }
    if (fclose(f) == 0 && good) return SR_OK;
    return sr_fail(why, SR_IO, "%s: cannot write: %s", path, strerror(errno));
}

/* Browsers blur an enlarged image: the fields of a heat map shall have edges. */
static sr_status sharpen_images(const char *path, sr_failure *why) {
    static const char mark[] = "<image ";
    char part[2 * PLOT_PATH + 8], *line = NULL;
    size_t size = 0;
    ssize_t length;
    snprintf(part, sizeof part, "%s.sharp", path);
    FILE *in = fopen(path, "r"), *out = in ? fopen(part, "w") : NULL;
    while (out && (length = getline(&line, &size, in)) > 0) {
        const char *at = strstr(line, mark);
        if (at)
            fprintf(out, "%.*s<image style='image-rendering: pixelated' ", (int)(at - line), line);
        fputs(at ? at + strlen(mark) : line, out);
    }
    free(line);
    bool good = out && !ferror(in) && !ferror(out);
    if (in) fclose(in);
    if (out && fclose(out) != 0) good = false;
    if (good && rename(part, path) == 0) return SR_OK;
    return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
}

sr_status plot_place_output(const char *from, const char *output, sr_failure *why) {
    char part[PLOT_PATH];
    if (snprintf(part, sizeof part, "%s.XXXXXX", output) >= (int)sizeof part)
        return sr_fail(why, SR_USAGE, "%s: the name is too long", output);
    const int fd = mkstemp(part);
    if (fd < 0) return sr_fail(why, SR_IO, "%s: %s", output, strerror(errno));
    const mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    close(fd);
    sr_status status = copy_file(from, part, why);
    if (status == SR_OK && rename(part, output) != 0)
        status = sr_fail(why, SR_IO, "%s: %s", output, strerror(errno));
    if (status != SR_OK) unlink(part);
    return status;
}

static sr_status print_output(const char *from, sr_failure *why) {
    FILE *in = fopen(from, "r");
    if (!in) return sr_fail(why, SR_IO, "%s: %s", from, strerror(errno));
    sr_status status = copy_stream(in, stdout, from, "stdout", why);
    fclose(in);
    return status;
}

/* -- gnuplot --------------------------------------------------------------------------------- */

static sr_status run_gnuplot(const plot_job *job, sr_failure *why) {
    char errors[2 * PLOT_PATH], line[512];
    snprintf(errors, sizeof errors, "%s/gnuplot.stderr", job->directory);
    char *const argv[] = {"gnuplot", "-d", "figure.gp", NULL};
    const plot_process p = {
        .argv = argv, .directory = job->directory, .errors = errors, .seconds = GNUPLOT_SECONDS};
    sr_failure run = {0};
    sr_status status = plot_process_run(&p, &run);
    plot_error_line(errors, line, sizeof line);
    if (status == SR_IO) {
        sr_fail(why, SR_IO, "%s", run.text);
        sr_hint(why, "install gnuplot 5.2 or later (Debian: apt-get install gnuplot-nox)");
        return SR_IO;
    }
    if (status == SR_STATE) return sr_fail(why, status, "%s", run.text);
    if (line[0])
        return sr_fail(why, SR_LIBRARY, "gnuplot, figure %s: %s", job->template->name, line);
    return status == SR_OK ? SR_OK : sr_fail(why, status, "%s", run.text);
}

static sr_status write_inputs(const plot_job *job, sr_failure *why) {
    char template[2 * PLOT_PATH];
    snprintf(template, sizeof template, "%s/template.gp", job->directory);
    sr_status status = copy_file(job->template->path, template, why);
    if (status == SR_OK) status = copy_style(job, why);
    return status == SR_OK ? write_script(job, why) : status;
}

/* key: NULL, or to be appended. */
static sr_status draw_new(const plot_job *job, const plot_key *key, sr_failure *why) {
    char figure[2 * PLOT_PATH];
    struct stat st;
    snprintf(figure, sizeof figure, "%s/%s", job->directory, figure_file[job->format]);
    sr_status status = run_gnuplot(job, why);
    if (status != SR_OK) return status;
    const bool there = stat(figure, &st) == 0;
    if (!there && errno != ENOENT) return sr_fail(why, SR_IO, "%s: %s", figure, strerror(errno));
    if (!there || st.st_size == 0)
        return sr_fail(why, SR_LIBRARY, "gnuplot drew nothing for figure %s", job->template->name);
    if (job->format == PLOT_PDF) status = remove_date(figure, why);
    if (job->format == PLOT_SVG) status = sharpen_images(figure, why);
    if (key && status == SR_OK) status = plot_key_append(key, figure, why);
    if (status != SR_OK) return status;
    return job->format == PLOT_SCREEN ? print_output(figure, why)
                                      : plot_place_output(figure, job->output, why);
}

sr_status plot_draw(const plot_job *job, sr_failure *why) {
    plot_key key;
    sr_status status = write_inputs(job, why);
    if (status == SR_OK && !job->earlier[0]) return draw_new(job, NULL, why);
    if (status == SR_OK) status = plot_key_make(&key, job->directory, why);
    if (status != SR_OK) return status;
    if (plot_key_fits(&key, job->earlier)) return plot_place_output(job->earlier, job->output, why);
    return draw_new(job, &key, why);
}
