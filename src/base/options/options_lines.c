/* options_lines.c -- lines of a text of options_dump; see options.h. */
#include <stdio.h>
#include <string.h>

#include "base/options/options_internal.h"

bool options_next_line(const char **at, option_line *l) {
    while (*at && **at) {
        const char *line = *at, *end = line + strcspn(line, "\n"), *equals = strstr(line, " = ");
        *at = *end ? end + 1 : end;
        if (line[0] == '#' || !equals || equals >= end) continue;
        *l = (option_line){line, equals + 3, (int)(equals - line), (int)(end - equals - 3)};
        const char *present = options_renamed(line, (size_t)l->key_length);
        if (present) l->key = present, l->key_length = (int)strlen(present);
        return true;
    }
    return false;
}

bool options_find_line(const char *text, const char *key, int key_length, option_line *l) {
    while (options_next_line(&text, l))
        if (l->key_length == key_length && strncmp(l->key, key, (size_t)key_length) == 0)
            return true;
    return false;
}

void options_skip_equal(const char **a, const char **b) {
    size_t equal = 0;
    for (size_t i = 0; (*a)[i] == (*b)[i]; i++) {
        if ((*a)[i] == '\n') equal = i + 1;
        if ((*a)[i]) continue;
        equal = i;
        break;
    }
    *a += equal;
    *b += equal;
}

bool options_left_out(const char *text) {
    return strstr(text, OPTIONS_LEFT_OUT) != NULL;
}

void options_line_value(const char *text, const char *key, char *value, size_t size) {
    option_line l;
    size_t used = 0;
    value[0] = 0;
    if (!options_find_line(text, key, (int)strlen(key), &l)) return;
    const bool quoted = l.value_length > 1 && l.value[0] == '"';
    const char *from = l.value + quoted, *end = l.value + l.value_length - quoted;
    for (; from < end && used + 1 < size; from++) {
        const bool escape = quoted && *from == '\\' && from + 1 < end;
        const char letter = escape ? options_unescape(*++from) : *from;
        if (letter) value[used++] = letter;
    }
    value[used] = 0;
}
