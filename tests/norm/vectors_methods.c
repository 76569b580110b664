/* vectors_methods.c -- which method and which options a vector file means. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "vectors.h"

typedef struct file_row {
    const char *norm;   /* of the file */
    const char *method; /* here */
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
};

static const file_row *find_file(const char *norm) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(files[i].norm, norm)) return &files[i];
    return NULL;
}

/* A word of the list, copied; the rest of the list. */
static const char *next_word(const char *list, char *word, size_t size) {
    list += strspn(list, " ");
    size_t n = strcspn(list, " ");
    snprintf(word, size, "%.*s", (int)n, list);
    return list + n;
}

/* The attribute as text: a number or a word. */
static bool attribute_text(const vector_case *c, const char *name, char *text, size_t size) {
    vector_text(c, name, text, size);
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
        if (!attribute_text(c, word, text, sizeof text)) continue;
        if (norm_options_set(&s->options, s->method, name, text, &why) != SR_OK) {
            fprintf(stderr, "%s: %s\n", c->where, why.text);
            c->broken = true;
        }
    }
}

/* AdaNorm's files choose among several methods by their attributes. */
static const char *method_name(const vector_case *c, const file_row *f, char *buf, size_t size) {
    char detach[16];
    if (strcmp(f->method, "detach-")) return f->method;
    snprintf(buf, size, "detach-%s", vector_text(c, "detach", detach, sizeof detach));
    return buf;
}

bool vector_setup_case(vector_case *c, vector_setup *s) {
    static char names[NORM_STATE_MAX][32];
    char buf[32];
    const file_row *f = find_file(c->norm);
    *s = (vector_setup){.method = f ? norm_find(method_name(c, f, buf, sizeof buf)) : NULL};
    if (!s->method) return false;
    s->options = norm_options_preset(s->method);
    s->options.eps = vector_number(c, "eps", s->options.eps);
    double momentum = vector_number(c, "momentum_new", NAN);
    s->options.alpha = isnan(momentum) ? vector_number(c, "alpha", s->options.alpha) : 1 - momentum;
    s->options.layer_scale = (int64_t)vector_number(c, "ls_groups", 0);
    set_params(c, s, f->params);
    const char *list = f->state;
    for (int i = 0; i < NORM_STATE_MAX && s->method->state[i].name; i++) {
        list = next_word(list, names[i], sizeof names[i]);
        s->state_name[i] = names[i];
        s->state_scale[i] = 1;
    }
    return true;
}

void vector_setup_step(vector_case *c, const vector_setup *s, int64_t step, norm_options *o) {
    (void)c, (void)s, (void)step, (void)o;
}
