/* options.c -- finds, sets and writes the rows of an option table. options_read.c reads command
 * lines and config files; options_help.c writes --help. */
#include "base/options/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/options_internal.h"
#include "base/program/tool.h"

/* A value before it is stored. */
typedef struct parsed {
    bool flag;
    int64_t integer;
    double real;
    const char *text;
    const option_list *list; /* the values so far */
} parsed;

const option *options_find(option_table table, const char *key) {
    for (int i = 0; i < table.count; i++)
        if (strcmp(table.row[i].key, key) == 0) return &table.row[i];
    const char *present = options_renamed(key, strlen(key));
    return present ? options_find(table, present) : NULL;
}

const option *options_find_letter(option_table table, char letter) {
    for (int i = 0; letter && i < table.count; i++)
        if (table.row[i].letter == letter) return &table.row[i];
    return NULL;
}

const char *options_nearest(option_table table, const char *key) {
    const char **names = malloc((size_t)table.count * sizeof *names + 1);
    if (!names) return NULL;
    for (int i = 0; i < table.count; i++) names[i] = table.row[i].key;
    const char *nearest = tool_nearest(key, names, table.count);
    free(names);
    return nearest;
}

static bool has_range(const option *row) {
    return (row->type == OPTION_INT || row->type == OPTION_REAL) &&
           (row->low != 0 || row->high != 0);
}

static bool open_above(const option *row) {
    return row->high >= (row->type == OPTION_INT ? 0x1p63 : INFINITY);
}

static bool open_below(const option *row) {
    return row->low <= (row->type == OPTION_INT ? -0x1p63 : -INFINITY);
}

/* True when text is one of the words of `choices`. */
static bool has_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    for (const char *at = choices; at;) {
        const char *bar = strchr(at, '|');
        size_t word = bar ? (size_t)(bar - at) : strlen(at);
        if (word == length && memcmp(at, text, word) == 0) return true;
        at = bar ? bar + 1 : NULL;
    }
    return false;
}

/* Returns the fault of the text as a value of this type, or NULL; sets *value. */
static const char *parse_int(const char *text, parsed *value) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end) return "is not a whole number";
    if (errno == ERANGE) return v < 0 ? "is too small" : "is too large";
    value->integer = v;
    return NULL;
}

static const char *parse_real(const char *text, parsed *value) {
    char *end;
    errno = 0;
    value->real = strtod(text, &end);
    if (end == text || *end) return "is not a number";
    if (errno == ERANGE && isinf(value->real))
        return value->real < 0 ? "is too small" : "is too large";
    return NULL;
}

static const char *parse_flag(const char *text, parsed *value) {
    static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false",
                                                                                "off", "0"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, yes[i]) == 0) return value->flag = true, NULL;
        if (strcmp(text, no[i]) == 0) return value->flag = false, NULL;
    }
    return "is not yes or no";
}

static const char *parse_value(const option *row, const char *text, parsed *value) {
    if (row->type == OPTION_INT) return parse_int(text, value);
    if (row->type == OPTION_REAL) return parse_real(text, value);
    if (row->type == OPTION_FLAG) return parse_flag(text, value);
    value->text = text;
    return strlen(text) < OPTION_TEXT_SIZE ? NULL : "is too long";
}

/* A bound of a whole number is written out: the seed's is 9007199254740992. */
static void bound_text(const option *row, double bound, char *text, size_t size) {
    snprintf(text, size, row->type == OPTION_INT ? "%.0f" : "%.15g", bound);
}

/* A default outside the range has a special meaning, as 0 for "the preset's". */
static bool is_special_default(const option *row) {
    parsed fallback = {0};
    if (!has_range(row) || parse_value(row, row->default_text, &fallback)) return false;
    const double v = row->type == OPTION_INT ? (double)fallback.integer : fallback.real;
    return !(v >= row->low && v <= row->high);
}

void options_range_text(const option *row, char *text, size_t size) {
    const char *unit = row->unit && strcmp(row->unit, "1") != 0 ? row->unit : "";
    const char *space = *unit ? " " : "";
    char low[40], high[40];
    bound_text(row, row->low, low, sizeof low);
    bound_text(row, row->high, high, sizeof high);
    if (!has_range(row) || (open_above(row) && open_below(row)))
        snprintf(text, size, "any value");
    else if (open_above(row))
        snprintf(text, size, "at least %s%s%s", low, space, unit);
    else if (open_below(row))
        snprintf(text, size, "at most %s%s%s", high, space, unit);
    else
        snprintf(text, size, "%s to %s%s%s", low, high, space, unit);
    const size_t used = strlen(text);
    if (is_special_default(row)) snprintf(text + used, size - used, ", or %s", row->default_text);
}

/* A default may lie outside the range. A value equal to it is allowed, so that a dumped
   configuration can be read. */
static bool is_default(const option *row, const parsed *value) {
    parsed fallback = {0};
    if (parse_value(row, row->default_text, &fallback)) return false;
    if (row->type == OPTION_INT) return fallback.integer == value->integer;
    if (row->type == OPTION_REAL)
        return fallback.real == value->real || (isnan(fallback.real) && isnan(value->real));
    if (row->type == OPTION_FLAG) return fallback.flag == value->flag;
    if (row->type == OPTION_LIST) return value->list && value->list->count == 0;
    return strcmp(fallback.text, value->text) == 0;
}

static const char *check_value(const option *row, const parsed *value) {
    if (is_default(row, value)) return NULL;
    if (row->type == OPTION_CHOICE)
        return has_choice(row->choices, value->text) ? NULL : "is not one of the choices";
    if (row->type != OPTION_INT && row->type != OPTION_REAL) return NULL;
    double v = row->type == OPTION_INT ? (double)value->integer : value->real;
    if (isnan(v)) return "is not a number";
    if (!has_range(row)) return NULL;
    if (v < row->low && !open_below(row)) return "is too small";
    if (v > row->high && !open_above(row)) return "is too large";
    return NULL;
}

static void *place_of(const option *row, void *values) {
    return row->place ? row->place : (char *)values + row->offset;
}

static void store_value(const option *row, void *values, const parsed *value) {
    void *place = place_of(row, values);
    option_list *list = place;
    if (row->type == OPTION_FLAG)
        *(bool *)place = value->flag;
    else if (row->type == OPTION_INT)
        *(int64_t *)place = value->integer;
    else if (row->type == OPTION_REAL)
        *(double *)place = value->real;
    else if (row->type != OPTION_LIST)
        memmove(place, value->text, strlen(value->text) + 1);
    else if (list->count < OPTION_LIST_MOST)
        memcpy(list->text[list->count++], value->text, strlen(value->text) + 1);
}

static parsed load_value(const option *row, const void *values) {
    const void *place = place_of(row, (void *)(uintptr_t)values);
    parsed value = {.text = place, .list = place};
    if (row->type == OPTION_FLAG) value.flag = *(const bool *)place;
    if (row->type == OPTION_INT) value.integer = *(const int64_t *)place;
    if (row->type == OPTION_REAL) value.real = *(const double *)place;
    return value;
}

void options_set_defaults(option_table table, void *values) {
    for (int i = 0; i < table.count; i++) {
        const option *row = &table.row[i];
        parsed value = {.text = ""};
        parse_value(row, row->default_text, &value);
        if (row->type == OPTION_LIST)
            ((option_list *)place_of(row, values))->count = 0;
        else
            store_value(row, values, &value);
    }
}

/* The choice nearest to text goes to `word`; false when none is near. */
static bool nearest_choice(const char *choices, const char *text, char *word, size_t size) {
    char words[OPTION_TEXT_SIZE * 2], *save = NULL;
    const char *names[64];
    int count = 0;
    if (strlen(choices) >= sizeof words) return false;
    memcpy(words, choices, strlen(choices) + 1);
    for (char *w = strtok_r(words, "|", &save); w && count < 64; w = strtok_r(NULL, "|", &save))
        names[count++] = w;
    const char *nearest = tool_nearest(text, names, count);
    if (nearest) snprintf(word, size, "%s", nearest);
    return nearest != NULL;
}

static sr_status refuse_value(const option *row, const char *text, const char *where,
                              const char *wrong, sr_failure *why) {
    char word[128], range[128], of[128] = "";
    /* On a command line `where` is the option; a line of a file may contain any. */
    if (where[0] != '-') snprintf(of, sizeof of, " of %s", row->key);
    options_range_text(row, range, sizeof range);
    if (row->type == OPTION_CHOICE) {
        sr_fail(why, SR_USAGE, "%s: value '%.80s'%s is not one of %s", where, text, of,
                row->choices);
        if (nearest_choice(row->choices, text, word, sizeof word))
            sr_hint(why, "did you mean '%s'?", word);
    } else if (row->type == OPTION_TEXT || row->type == OPTION_LIST) {
        sr_fail(why, SR_USAGE, "%s: value '%.40s...'%s %s; at most %d bytes", where, text, of,
                wrong, OPTION_TEXT_SIZE - 1);
    } else if (row->type == OPTION_FLAG || !has_range(row)) {
        sr_fail(why, SR_USAGE, "%s: value '%.80s'%s %s", where, text, of, wrong);
    } else {
        sr_fail(why, SR_USAGE, "%s: value '%.80s'%s %s; range %s", where, text, of, wrong, range);
    }
    return SR_USAGE;
}

sr_status options_set(option_table table, void *values, const char *key, const char *text,
                      const char *where, sr_failure *why) {
    const option *row = options_find(table, key);
    if (!row) {
        sr_fail(why, SR_USAGE, "%s: unknown key '%.80s'", where, key);
        const char *nearest = options_nearest(table, key);
        if (nearest) sr_hint(why, "did you mean '%s'?", nearest);
        return SR_USAGE;
    }
    parsed value = {0};
    const char *wrong = parse_value(row, text, &value);
    if (!wrong) wrong = check_value(row, &value);
    if (wrong) return refuse_value(row, text, where, wrong, why);
    if (row->type == OPTION_LIST &&
        ((option_list *)place_of(row, values))->count == OPTION_LIST_MOST)
        return sr_fail(why, SR_USAGE, "%s: value '%.80s' is one too many; at most %d", where, text,
                       OPTION_LIST_MOST);
    store_value(row, values, &value);
    return SR_OK;
}

bool options_changed(const option *row, const void *values) {
    const parsed value = load_value(row, values);
    return !is_default(row, &value);
}

/* The shortest decimal text that reads back as the same double. */
static void format_real(double value, char *text, size_t size) {
    if (isnan(value)) {
        snprintf(text, size, "nan");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

void options_format(const option *row, const void *values, char *text, size_t size) {
    const parsed value = load_value(row, values);
    if (row->type == OPTION_FLAG)
        snprintf(text, size, "%s", value.flag ? "yes" : "no");
    else if (row->type == OPTION_INT)
        snprintf(text, size, "%" PRId64, value.integer);
    else if (row->type == OPTION_REAL)
        format_real(value.real, text, size);
    else if (row->type == OPTION_LIST)
        snprintf(text, size, "%d values", value.list->count);
    else
        snprintf(text, size, "%s", value.text);
}
