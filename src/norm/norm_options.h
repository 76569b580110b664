/* norm_options.h -- the table of methods, and their parameters by name. */
#ifndef NORM_NORM_OPTIONS_H
#define NORM_NORM_OPTIONS_H

#include "base/options/norm_value.h"
#include "norm/kernels/norm_method.h"

const norm_method *norm_find(const char *name); /* NULL when unknown */
const norm_method *norm_at(int i);              /* i-th row of the table; NULL past the end */
/* Method and parts of a value of --norm, "brn(r_max=3)+ls"; NULL when its form or method is
   unknown. */
const norm_method *norm_named(const char *text, norm_value *v);

/* eps, alpha, layer scale and every param of the method at their defaults. */
norm_options norm_options_default(const norm_method *m);
/* Sets one parameter by name: eps, alpha, layer_scale or one of the method's row. text is a number
   or a word. SR_USAGE for an unknown name, a malformed value or one out of range. */
sr_status norm_options_set(norm_options *o, const norm_method *m, const char *name,
                           const char *text, sr_failure *why);
/* Sets the parameters between the parentheses of a value of --norm. */
sr_status norm_options_read(norm_options *o, const norm_method *m, const norm_value *v,
                            sr_failure *why);
/* Writes "rbn eps=1e-05 alpha=0.95 lambda=0.1 nu=0.01 running=after scale=sum": method and
   parameters, cut to `size` bytes. */
void norm_options_format(const norm_options *o, const norm_method *m, char *text, size_t size);
/* Index of a parameter in norm_options.param, or -1. */
int norm_param_find(const norm_method *m, const char *name);

/* An option of version 0.1 that sets a parameter in each method that has it. */
enum { NORM_OPTION_MAX = 64, NORM_OPTION_KEY = 48, NORM_OPTION_HELP = 256 };
typedef struct norm_option {
    char key[NORM_OPTION_KEY];   /* "rbn-lambda-mean" */
    char help[NORM_OPTION_HELP]; /* "set lambda of rbn, rbn-released" */
    int place;
} norm_option;
const norm_option *norm_option_at(int i); /* in the order of their places; NULL past the end */
/* Index in norm_options.param of the parameter that the option sets in this method, or -1. */
int norm_option_param(const norm_option *o, const norm_method *m);

#endif
