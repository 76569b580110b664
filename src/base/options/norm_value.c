/* norm_value.c -- splits METHOD(NAME=VALUE;...)+ls; see norm_value.h. */
#include "base/options/norm_value.h"

#include <string.h>

bool norm_value_split(const char *text, int length, norm_value *v) {
    *v = (norm_value){.method = text};
    v->layer_scale = length > 3 && !memcmp(text + length - 3, "+ls", 3);
    const int rest = v->layer_scale ? length - 3 : length;
    const char *open = memchr(text, '(', (size_t)rest), *close = memchr(text, ')', (size_t)rest);
    v->method_length = open ? (int)(open - text) : rest;
    if (!open) return !close;
    if (close != text + rest - 1 || open == text) return false;
    v->params = open + 1;
    v->params_length = (int)(close - v->params);
    return !memchr(v->params, '(', (size_t)v->params_length) &&
           !memchr(text, '+', (size_t)v->method_length);
}

bool norm_value_next(const norm_value *v, const char **at, option_line *param) {
    if (!v->params) return false; /* no offset to a null pointer */
    const char *end = v->params + v->params_length;
    if (!*at) *at = v->params;
    if (*at >= end) return false;
    const char *stop = memchr(*at, ';', (size_t)(end - *at));
    if (!stop) stop = end;
    const char *equals = memchr(*at, '=', (size_t)(stop - *at)), *name_end = equals ? equals : stop;
    *param = (option_line){.key = *at, .key_length = (int)(name_end - *at)};
    if (equals) param->value = equals + 1, param->value_length = (int)(stop - equals - 1);
    *at = stop < end ? stop + 1 : end;
    return true;
}

bool norm_value_find(const norm_value *v, const char *name, int name_length, option_line *param) {
    for (const char *at = NULL; norm_value_next(v, &at, param);)
        if (param->key_length == name_length && !memcmp(param->key, name, (size_t)name_length))
            return true;
    return false;
}

size_t norm_value_entry(const char *list) {
    size_t length = 0;
    for (int depth = 0; list[length] && (depth > 0 || list[length] != ','); length++)
        depth += (list[length] == '(') - (list[length] == ')');
    return length;
}
