/* vectors_methods.c -- the method and options of a vector file. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "vectors.h"

typedef struct file_row {
    const char *norm;   /* the file's name */
    const char *method; /* our name */
    const char *params; /* "attribute=param attribute=param" */
    const char *state;  /* datasets state_X in the order of the method's states */
} file_row;

static const file_row files[] = {
    {"none", "none", "", ""},
    {"bn", "bn", "unbiased=unbiased", "run_mu run_sigma2"},
    {"sync_bn", "bn", "unbiased=unbiased", "run_mu run_sigma2"},
    {"pnv", "pnv", "", "run_psi2"},
    {"sync_pnv", "pnv", "", "run_psi2"},
    {"ln", "ln", "unbiased=unbiased", ""},
    {"ln_simple", "ln-simple", "unbiased=unbiased eps_mode=placement", ""},
    {"detachnorm", "detach-", "unbiased=unbiased eps_mode=placement", ""},
    {"adanorm", "adanorm", "unbiased=unbiased eps_mode=placement C=C k=k", ""},
    {"adanorm_released", "detach-", "unbiased=unbiased eps_mode=placement C=C k=k", ""},
    {"rmsnorm", "rmsnorm", "eps_mode=placement", ""},
    {"groupnorm", "groupnorm", "groups=groups", ""},
    {"instancenorm", "instancenorm", "", ""},
    {"pn", "pn", "alpha_bwd=alpha_bwd", "run_psi2 nu"},
    {"pn_ls", "pn", "alpha_bwd=alpha_bwd", "run_psi2 nu"},
    {"pn_released", "pn-released", "alpha_bwd=alpha_bwd warmup=warmup", "run_psi2 ema_gz"},
    {"bn_powernorm_released", "bn-powernorm", "", "run_mu run_sigma2"},
    {"rbn", "rbn", "lam=lambda nu=nu penalty_running=running", "run_mu run_sigma2"},
    {"rbn_released", "rbn-released", "lam=lambda nu=nu penalty=penalty", "run_mu run_sigma2"},
    {"brn", "brn", "", "run_mu run_sigma"},
    {"mabn", "mabn", "buffer=buffer warmup=warmup", "run_psi2 buf_x2 buf_gz"},
};

static const file_row *find_file(const char *norm) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(files[i].norm, norm)) return &files[i];
    return NULL;
}

/* Copies a word of the list; returns the rest of the list. */
static const char *next_word(const char *list, char *word, size_t size) {
    list += strspn(list, " ");
    size_t n = strcspn(list, " ");
    snprintf(word, size, "%.*s", (int)n, list);
    return list + n;
}

/* Words of the files with other names here. */
static const char *const words[][2] = {
    {"var", "inside"}, {"std", "outside"}, {"pre", "before"}, {"post", "after"}};

static void translate(char *text, size_t size) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i][0])) {
            snprintf(text, size, "%s", words[i][1]);
            return;
        }
}

/* Reads the attribute as text: a number or a word. */
static bool attribute_text(const vector_case *c, const char *name, char *text, size_t size) {
    vector_text(c, name, text, size);
    translate(text, size);
    if (text[0]) return true;
    double value = vector_number(c, name, NAN);
    snprintf(text, size, "%.17g", value);
    return !isnan(value);
}

static void set_params(vector_case *c, vector_setup *s, const char *list) {
    char word[64], text[64];
    sr_failure why = {0};
    while (*(list = next_word(list, word, sizeof word)) || word[0]) {
        char *name = strchr(word, '=');
        *name++ = 0;
        if (norm_param_find(s->method, name) < 0) continue; /* of another method */
        if (!attribute_text(c, word, text, sizeof text)) continue;
        if (norm_options_set(&s->options, s->method, name, text, &why) != SR_OK) {
            fprintf(stderr, "%s: %s\n", c->where, why.text);
            c->broken = true;
        }
    }
}

/* AdaNorm's files contain several methods; their attributes select one. */
static const char *method_name(const vector_case *c, const file_row *f, char *buf, size_t size) {
    char detach[16];
    if (strcmp(f->method, "detach-")) return f->method;
    vector_text(c, "detach", detach, sizeof detach);
    if (vector_number(c, "k", 0) != 0) return "adanorm";
    if (!strcmp(detach, "none")) return "ln-simple";
    snprintf(buf, size, "detach-%s", detach);
    return buf;
}

bool vector_setup_case(vector_case *c, vector_setup *s) {
    static char names[NORM_STATE_MAX][32];
    char buf[32];
    const file_row *f = find_file(c->norm);
    *s = (vector_setup){.method = f ? norm_find(method_name(c, f, buf, sizeof buf)) : NULL};
    if (!s->method) return false;
    s->options = norm_options_default(s->method);
    s->options.eps = vector_number(c, "eps", s->options.eps);
    double momentum = vector_number(c, "momentum_new", NAN);
    double alpha = vector_number(c, "alpha", vector_number(c, "alpha_fwd", s->options.alpha));
    s->options.alpha = isnan(momentum) ? alpha : 1 - momentum;
    s->options.layer_scale = (int64_t)vector_number(c, "ls_groups", (double)s->options.layer_scale);
    set_params(c, s, f->params);
    const char *list = f->state;
    for (int i = 0; i < NORM_STATE_MAX && s->method->state[i].name; i++) {
        list = next_word(list, names[i], sizeof names[i]);
        s->state_name[i] = names[i];
        s->state_scale[i] = 1;
        if (!strcmp(names[i], "ema_gz")) /* nu = (1 - alpha_bwd) * ema_gz */
            s->state_scale[i] = 1 / (1 - vector_number(c, "alpha_bwd", NAN));
    }
    return true;
}

static void set_number(const vector_setup *s, norm_options *o, const char *name, double value) {
    o->param[norm_param_find(s->method, name)] = value;
}

void vector_setup_step(vector_case *c, const vector_setup *s, int64_t step, norm_options *o) {
    if (strcmp(c->norm, "brn")) return;
    const double *r_max = vector_read(c, "in/rmax", NULL), *d_max = vector_read(c, "in/dmax", NULL);
    if (!r_max || !d_max) return;
    set_number(s, o, "warmup", 0);
    set_number(s, o, "r_calls", 0);
    set_number(s, o, "d_calls", 0);
    set_number(s, o, "r_max", r_max[step]);
    set_number(s, o, "d_max", d_max[step]);
}
