/* options_lines.c -- lines of a text of options_dump; see options.h. */
#include <stdio.h>
#include <string.h>

#include "options_internal.h"

bool options_next_line(const char **at, option_line *l) {
    while (*at && **at) {
        const char *line = *at, *end = line + strcspn(line, "\n"), *equals = strstr(line, " = ");
        *at = *end ? end + 1 : end;
        if (line[0] == '#' || !equals || equals >= end) continue;
        *l = (option_line){line, equals + 3, (int)(equals - line), (int)(end - equals - 3)};
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

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Cuts what does not fit. */
static void append(char *text, size_t size, const char *more) {
    size_t used = strlen(text);
    while (*more && used + 1 < size) text[used++] = *more++;
    text[used] = 0;
}

void options_data_name(const char *text, const char *data, bool pairs, char *name, size_t size) {
    char directory[2048], source[41], target[41], direction[96];
    options_line_value(text, "data-dir", directory, sizeof directory);
    for (size_t used = strlen(directory); used > 1 && directory[used - 1] == '/';)
        directory[--used] = 0;
    const char *slash = strrchr(directory, '/'), *base = slash ? slash + 1 : directory;
    const bool named = base[0] && base[0] != '.';
    name[0] = 0;
    append(name, size, named ? base : data);
    if (!named || !pairs) return;
    options_line_value(text, "source", source, sizeof source);
    options_line_value(text, "target", target, sizeof target);
    snprintf(direction, sizeof direction, "%s-%s", source, target);
    if (!source[0] || ends_with(name, direction)) return;
    append(name, size, " ");
    append(name, size, direction);
}
