/* norm_value.h -- the value of --norm: METHOD or METHOD(NAME=VALUE;...), with +ls at its end for a
   layer scale. src/norm checks the names. */
#ifndef BASE_OPTIONS_NORM_VALUE_H
#define BASE_OPTIONS_NORM_VALUE_H

#include "base/options/options.h"

/* Points into the text. */
typedef struct norm_value {
    const char *method, *params; /* params: between the parentheses */
    int method_length, params_length;
    bool layer_scale;
} norm_value;

#define NORM_VALUE_FORM "METHOD(NAME=VALUE;...)+ls"

/* Splits a text of `length` bytes; false when it has another form. */
bool norm_value_split(const char *text, int length, norm_value *v);

/* The next NAME=VALUE; *at is NULL before the first one. value NULL: there is no '='. False at the
   end. */
bool norm_value_next(const norm_value *v, const char **at, option_line *param);
bool norm_value_find(const norm_value *v, const char *name, int name_length, option_line *param);

/* Bytes of the first entry of a list SITES=METHOD,...: commas between parentheses are part of
   it. */
size_t norm_value_entry(const char *list);

#endif
