/* options_read.c -- options from a command line and from config files; see options.h.
 *
 * A config file is lines `key = value`. Blanks around key and value and a carriage return at the
 * end of a line are ignored. '#' starts a comment at the start of a line or after a blank. A value
 * in double quotes is taken literally, except for the escapes \" \\ \n \r \t. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_kind.h"
#include "base/options/options_internal.h"

/* -- command line ------------------------------------------------------------------------------ */

typedef struct cursor {
    option_table table;
    void *values;
    int argc, at;
    char **argv;
    option_origin *origin; /* NULL: not noted */
    sr_failure *why;
} cursor;

static sr_status read_file(option_table table, void *values, option_origin *origin,
                           const char *path, sr_failure *why);

/* origin may be NULL, and row NULL. */
static void note_origin(option_table table, option_origin *origin, const option *row,
                        option_origin where) {
    if (origin && row) origin[row - table.row] = where;
}

static sr_status unknown_argument(const cursor *c, const char *argument, const char *key) {
    size_t length = strcspn(key, "=");
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
             key);
    sr_fail(c->why, SR_USAGE, "unknown option '%.100s'", argument);
    const char *nearest = options_nearest(c->table, name);
    if (nearest) sr_hint(c->why, "did you mean --%s?", nearest);
    return SR_USAGE;
}

/* A forgotten value would swallow the next option; negative numbers are values. */
static bool looks_like_option(const cursor *c, const char *text) {
    if (text[0] != '-' || !text[1]) return false;
    if (text[1] == '-') return true;
    return !text[2] && options_find_letter(c->table, text[1]);
}

static sr_status take_value(cursor *c, const option *row, const char *text, const char *where) {
    if (!text) {
        if (c->at + 1 >= c->argc || looks_like_option(c, c->argv[c->at + 1])) {
            sr_fail(c->why, SR_USAGE, "%s: needs a value", where);
            if (c->at + 1 < c->argc)
                sr_hint(c->why, "a value that begins with '-' is written --%s=VALUE", row->key);
            return SR_USAGE;
        }
        text = c->argv[++c->at];
    }
    sr_status status = options_set(c->table, c->values, row->key, text, where, c->why);
    note_origin(c->table, c->origin, row, OPTION_ON_LINE);
    if (status == SR_OK && strcmp(row->key, OPTIONS_CONFIG_KEY) == 0)
        return read_file(c->table, c->values, c->origin, text, c->why);
    return status;
}

static sr_status set_flag(const cursor *c, const option *row, bool on) {
    note_origin(c->table, c->origin, row, OPTION_ON_LINE);
    return options_set(c->table, c->values, row->key, on ? "yes" : "no", row->key, c->why);
}

/* --key value, --key=value, --flag, --no-flag. */
static sr_status take_long(cursor *c, const char *argument) {
    char key[128], where[132];
    const char *name = argument + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    if (length >= sizeof key) return unknown_argument(c, argument, name);
    snprintf(key, sizeof key, "%.*s", (int)length, name);
    snprintf(where, sizeof where, "--%s", key);

    const option *row = options_find(c->table, key);
    bool negated = !row && strncmp(key, "no-", 3) == 0;
    if (negated) {
        row = options_find(c->table, key + 3);
        if (row && row->type != OPTION_FLAG) row = NULL;
    }
    if (!row) return unknown_argument(c, argument, name);
    if (row->type != OPTION_FLAG) return take_value(c, row, equals ? equals + 1 : NULL, where);
    if (!equals) return set_flag(c, row, !negated);
    sr_fail(c->why, SR_USAGE, "%s: takes no value, got '%.80s'", where, equals + 1);
    sr_hint(c->why, "write --%s or --no-%s", row->key, row->key);
    return SR_USAGE;
}

/* -k value, -kvalue, -f. */
static sr_status take_short(cursor *c, const char *argument) {
    char where[3] = {'-', argument[1], 0}, key[128];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(argument + 1, "="), argument + 1);
    const option *row = options_find_letter(c->table, argument[1]);
    if (!row || (argument[2] && (row->type == OPTION_FLAG || options_find(c->table, key))))
        return unknown_argument(c, argument, argument + 1);
    if (row->type == OPTION_FLAG) return set_flag(c, row, true);
    return take_value(c, row, argument[2] ? argument + 2 : NULL, where);
}

sr_status options_parse(option_table table, void *values, int argc, char **argv, int first,
                        int *positional, sr_failure *why) {
    return options_parse_noting(table, values, NULL, argc, argv, first, positional, why);
}

sr_status options_parse_noting(option_table table, void *values, option_origin *origin, int argc,
                               char **argv, int first, int *positional, sr_failure *why) {
    cursor c = {.table = table,
                .values = values,
                .argc = argc,
                .argv = argv,
                .at = first,
                .origin = origin,
                .why = why};
    for (int i = 0; origin && i < table.count; i++) origin[i] = OPTION_PRESET;
    bool ended = false;
    *positional = 0;
    for (; c.at < argc; c.at++) {
        const char *argument = argv[c.at];
        sr_status status = SR_OK;
        if (ended || argument[0] != '-' || !argument[1]) {
            /* The arguments between move up by one. */
            int to = first + (*positional)++;
            char *moved = argv[c.at];
            for (int i = c.at; i > to; i--) argv[i] = argv[i - 1];
            argv[to] = moved;
        } else if (strcmp(argument, "--") == 0)
            ended = true;
        else
            status = argument[1] == '-' ? take_long(&c, argument) : take_short(&c, argument);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

/* -- config file ------------------------------------------------------------------------------- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static char *skip_blanks(char *text) {
    while (is_blank(*text)) text++;
    return text;
}

static void cut_blanks_at_end(char *text) {
    size_t length = strlen(text);
    while (length && is_blank(text[length - 1])) text[--length] = 0;
}

static void cut_comment(char *text) {
    for (char *at = text; *at; at++)
        if (*at == '#' && (at == text || is_blank(at[-1]))) {
            *at = 0;
            return;
        }
}

static const char escaped[] = "\"\\\n\r\t", letters[] = "\"\\nrt";

char options_unescape(char letter) {
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? escaped[at - letters] : 0;
}

/* Reads a quoted value in place; *text is at the opening quote. Returns the fault, or NULL. */
static const char *unquote(char **text) {
    char *from = *text + 1, *to = *text;
    for (; *from != '"'; from++) {
        if (*from == '\\')
            from++, *to = options_unescape(*from);
        else
            *to = *from;
        if (!*from) return "the closing quote is missing";
        if (!*to++) return "a backslash in quotes is followed by none of \" \\ n r t";
    }
    char *rest = skip_blanks(from + 1);
    if (*rest && *rest != '#') return "there is text after the closing quote";
    *to = 0;
    return NULL;
}

/* Sets the option of one line. `where` is path:line. */
static sr_status take_line(option_table table, void *values, option_origin *origin, char *line,
                           const char *where, sr_failure *why) {
    char *key = skip_blanks(line), *equals = strchr(key, '=');
    if (!*key || *key == '#') return SR_OK;
    if (!equals || equals == key || memchr(key, '#', (size_t)(equals - key)))
        return sr_fail(why, SR_USAGE, "%s: '%.80s' is not of the form 'key = value'", where, key);
    *equals = 0;
    cut_blanks_at_end(key);
    char *value = skip_blanks(equals + 1);
    if (*value == '"') {
        const char *wrong = unquote(&value);
        if (wrong) return sr_fail(why, SR_USAGE, "%s: value of %.80s: %s", where, key, wrong);
    } else {
        cut_comment(value);
        cut_blanks_at_end(value);
    }
    if (strcmp(key, OPTIONS_CONFIG_KEY) == 0 && options_find(table, key))
        return sr_fail(why, SR_USAGE, "%s: a config file cannot name another config file", where);
    note_origin(table, origin, options_find(table, key), OPTION_IN_FILE);
    return options_set(table, values, key, value, where, why);
}

static sr_status read_lines(option_table table, void *values, option_origin *origin, FILE *in,
                            const char *path, sr_failure *why) {
    char *line = NULL, where[512];
    size_t capacity = 0;
    ssize_t length;
    sr_status status = SR_OK;
    errno = 0;
    for (long number = 1; status == SR_OK && (length = getline(&line, &capacity, in)) >= 0;
         number++) {
        snprintf(where, sizeof where, "%.480s:%ld", path, number);
        if (strlen(line) != (size_t)length) {
            status = sr_fail(why, SR_USAGE, "%s: the line holds a zero byte", where);
            break;
        }
        if (length && line[length - 1] == '\n') line[--length] = 0;
        if (length && line[length - 1] == '\r') line[--length] = 0;
        bool marked = number == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0;
        status = take_line(table, values, origin, line + (marked ? 3 : 0), where, why);
        errno = 0;
    }
    free(line);
    if (status == SR_OK && !feof(in))
        return sr_fail(why, errno == ENOMEM ? SR_MEMORY : SR_IO, "%s: %s", path, strerror(errno));
    return status;
}

enum { CONFIG_BYTES = 1 << 20 };

/* Before it is opened, since a pipe would wait for a writer, and a device has no end. */
static sr_status check_config(const char *path, sr_failure *why) {
    struct stat s;
    if (stat(path, &s) != 0) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode)) return sr_fail(why, SR_IO, "%s: %s", path, strerror(EISDIR));
    if (!S_ISREG(s.st_mode))
        return sr_fail(why, SR_IO, "%s: not a regular file, as a config file is", path);
    if (s.st_size > CONFIG_BYTES)
        return sr_fail(why, SR_USAGE, "%s: %lld bytes are no config file; at most %d", path,
                       (long long)s.st_size, CONFIG_BYTES);
    return file_kind_check_path(path, 0, "a config file", why);
}

static sr_status read_file(option_table table, void *values, option_origin *origin,
                           const char *path, sr_failure *why) {
    sr_status checked = check_config(path, why);
    if (checked != SR_OK) return checked;
    FILE *in = fopen(path, "r");
    if (!in) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    sr_status status = read_lines(table, values, origin, in, path, why);
    fclose(in);
    return status;
}

sr_status options_read_text(option_table table, void *values, const char *text, const char *where,
                            sr_failure *why) {
    if (!*text) return SR_OK;
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    if (!in) return sr_fail(why, SR_MEMORY, "%s: out of memory to read the options", where);
    sr_status status = read_lines(table, values, NULL, in, where, why);
    fclose(in);
    return status;
}

sr_status options_read_file(option_table table, void *values, const char *path, sr_failure *why) {
    return read_file(table, values, NULL, path, why);
}

/* -- the copy of all values -------------------------------------------------------------------- */

static bool needs_quotes(const char *text) {
    size_t length = strlen(text);
    return length && (is_blank(text[0]) || is_blank(text[length - 1]) || text[0] == '"' ||
                      strpbrk(text, "#\n\r"));
}

/* Writes the value between quotes; `out` has memory for twice the text and the quotes. */
static void quote(const char *text, char *out) {
    *out++ = '"';
    for (; *text; text++) {
        const char *special = strchr(escaped, *text);
        if (special) *out++ = '\\';
        *out++ = special ? letters[special - escaped] : *text;
    }
    *out++ = '"';
    *out = 0;
}

char *options_dump(option_table table, const void *values) {
    char value[OPTION_TEXT_SIZE], quoted[2 * OPTION_TEXT_SIZE + 3];
    size_t capacity = sizeof OPTIONS_LEFT_OUT, at = 0;
    bool left_out = false;
    for (int i = 0; i < table.count; i++) capacity += strlen(table.row[i].key) + sizeof quoted + 4;
    char *text = malloc(capacity);
    if (!text) return NULL;
    text[0] = 0;
    for (int i = 0; i < table.count; i++) {
        const option *row = &table.row[i];
        if (strcmp(row->key, OPTIONS_CONFIG_KEY) == 0)
            continue; /* its lines are among the values */
        if (row->old && !options_changed(row, values)) continue;
        if (!options_has_use(row, values)) {
            left_out = true;
            continue;
        }
        options_format(row, values, value, sizeof value);
        if (needs_quotes(value))
            quote(value, quoted);
        else
            memcpy(quoted, value, strlen(value) + 1);
        at += (size_t)snprintf(text + at, capacity - at, "%s = %s\n", row->key, quoted);
    }
    if (left_out) snprintf(text + at, capacity - at, "%s", OPTIONS_LEFT_OUT);
    return text;
}
