/* option_conditions.c -- options that have an effect only where others have certain values; see
 * options.h. */
#include <string.h>

#include "base/options/options_internal.h"

/* The condition of the option `key` that does not hold, or NULL. */
static const option_use *first_unmet(const option_use *use, const void *values, const char *key) {
    if (!use) return NULL;
    const option_use *unmet = first_unmet(use->and, values, key);
    return unmet || (use->obeys ? use->obeys(values, key) : use->holds(values)) ? unmet : use;
}

bool options_lists(const char *words, const char *key) {
    const size_t length = strlen(key);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && !memcmp(at, key, length)) return true;
    return false;
}

bool options_has_use(const option *row, const void *values) {
    return !first_unmet(row->use, values, row->key);
}

static bool same_value(const option *row, const void *a, const void *b) {
    char text_a[OPTION_TEXT_SIZE], text_b[OPTION_TEXT_SIZE];
    options_format(row, a, text_a, sizeof text_a);
    options_format(row, b, text_b, sizeof text_b);
    return strcmp(text_a, text_b) == 0;
}

/* Values for "none" give the message "without --key". */
static bool is_absent(const char *value) {
    static const char *const words[] = {"", "0", "no", "nan"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(value, words[i]) == 0) return true;
    return false;
}

static sr_status refuse(option_table table, const void *values, const option *row,
                        const option_use *unmet, sr_failure *why) {
    char value[OPTION_TEXT_SIZE] = "";
    const option *with = options_find(table, unmet->with);
    if (with) options_format(with, values, value, sizeof value);
    if (is_absent(value))
        return sr_fail(why, SR_USAGE, "--%s has no effect without --%s", row->key, unmet->with);
    return sr_fail(why, SR_USAGE, "--%s has no effect with --%s %.80s", row->key, unmet->with,
                   value);
}

sr_status options_check_use(option_table table, const void *values, const void *base,
                            const option_origin *origin, sr_failure *why) {
    for (int i = 0; i < table.count; i++) {
        const option *row = &table.row[i];
        const option_use *unmet = first_unmet(row->use, values, row->key);
        const bool given = origin[i] == OPTION_ON_LINE ||
                           (origin[i] == OPTION_IN_FILE && !same_value(row, values, base));
        if (unmet && given) return refuse(table, values, row, unmet, why);
    }
    return SR_OK;
}
