/* options.h -- one table of options. Its rows give the parser, --help, range messages and the
 * stored configuration.
 *
 * A row has a key, the type of its value, and the value's offset in the caller's struct. It also
 * has the default as a user types it, the range, the unit and the help. A command line has `--key
 * value` or `--key=value`, a .conf file `key = value`. There '#' at the start of a line or after a
 * blank begins a comment; "..." quotes a value. A flag is `--flag` or `--no-flag`, in a file yes or
 * no. The last value of a repeated option wins; lists keep all.
 */
#ifndef BASE_OPTIONS_OPTIONS_H
#define BASE_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "statrec/base.h"

typedef enum {
    OPTION_FLAG,   /* bool */
    OPTION_INT,    /* int64_t, low <= value <= high */
    OPTION_REAL,   /* double, low <= value <= high; nan is rejected */
    OPTION_TEXT,   /* char[OPTION_TEXT_SIZE] */
    OPTION_CHOICE, /* char[OPTION_TEXT_SIZE], one of the words in `choices` */
    OPTION_LIST,   /* option_list: each time it is given adds a text; default "". Not for dumps */
} option_type;

enum { OPTION_TEXT_SIZE = 512 };
typedef char option_text[OPTION_TEXT_SIZE];

enum { OPTION_LIST_MOST = 16 };
typedef struct option_list {
    int count;
    option_text text[OPTION_LIST_MOST];
} option_list;

/* When an option has an effect, as the values of the others decide. */
typedef struct option_use {
    const char *with; /* key of the option that decides, for messages */
    bool (*holds)(const void *values);
    const struct option_use *and; /* checked first; NULL: none */
    /* Instead of holds: whether the chosen model, data or optimizer obeys the option. */
    bool (*obeys)(const void *values, const char *key);
} option_use;

typedef struct option {
    const char *group; /* heading in --help; the same pointer text for neighbours */
    const char *key;   /* "max-tokens" */
    char letter;       /* 'o' for -o, 0 for none */
    option_type type;
    size_t offset; /* offset of the value in the struct */
    /* default, as text; outside the range (0, nan: "unset") it is allowed too */
    const char *default_text;
    double low, high;      /* INT and REAL; both 0: any value */
    const char *unit;      /* "tokens", "steps", "nats" ... or "" */
    const char *choices;   /* CHOICE: words separated by '|' */
    const char *help;      /* one line, starts lower case, no full stop */
    const option_use *use; /* NULL: it always has an effect */
    void *place;           /* address of the value outside the struct; NULL: the offset applies */
    /* Placeholder of the value in --help, "FILE"; NULL: TEXT, N, X or WORD, by the type. Completion
       offers its files, or names of `statrec list` (tools/completion.sh). */
    const char *value;
    bool common; /* in the short --help */
    bool old;    /* another option replaces it: stored only if it differs from the default */
} option;

/* Rows without a letter; `at` is the offset of the value in the struct. More may follow the help,
 * as `.use = &of_text`. */
#define TEXT_OPTION(group, key, at, default_text, help_line, ...)                                  \
    { group, key, 0, OPTION_TEXT, at, default_text, 0, 0, "", "", .help = help_line, __VA_ARGS__ }
#define CHOICE_OPTION(group, key, at, default_text, words, help_line, ...)                         \
    {                                                                                              \
        group, key, 0, OPTION_CHOICE, at, default_text, 0, 0, "", words, .help = help_line,        \
                                                                         __VA_ARGS__               \
    }
#define LIST_OPTION(group, key, at, help_line, ...)                                                \
    { group, key, 0, OPTION_LIST, at, "", 0, 0, "", "", .help = help_line, __VA_ARGS__ }
#define INT_OPTION(group, key, at, default_text, low, high, unit, help_line, ...)                  \
    {                                                                                              \
        group, key, 0, OPTION_INT, at, default_text, low, high, unit, "", .help = help_line,       \
                                                                          __VA_ARGS__              \
    }
#define REAL_OPTION(group, key, at, default_text, low, high, unit, help_line, ...)                 \
    {                                                                                              \
        group, key, 0, OPTION_REAL, at, default_text, low, high, unit, "", .help = help_line,      \
                                                                           __VA_ARGS__             \
    }
#define FLAG_OPTION(group, key, at, default_text, help_line, ...)                                  \
    { group, key, 0, OPTION_FLAG, at, default_text, 0, 0, "", "", .help = help_line, __VA_ARGS__ }

/* The row of -o. */
#define OUTPUT_OPTION(at, help_line)                                                               \
    {                                                                                              \
        .key = "output", .letter = 'o', .type = OPTION_TEXT, .offset = at, .default_text = "",     \
        .unit = "", .help = help_line, .value = "FILE"                                             \
    }

typedef struct option_table {
    const option *row;
    int count;
} option_table;

/* Fills `values` with the defaults of all rows. */
void options_set_defaults(option_table table, void *values);

/* Sets one option from text. A message starts with `where` ("train.conf:12" or "--lr"): "where:
   value 'x' of key is too large; range low to high". */
sr_status options_set(option_table table, void *values, const char *key, const char *text,
                      const char *where, sr_failure *why);

/* Reads argv[first..argc-1]. Arguments that are not options are moved to the front of argv[first..]
 * in their order and counted in *positional; "--" ends the options. The file of an option `config`
 * (letter 'c') is read at its place in the command line. */
sr_status options_parse(option_table table, void *values, int argc, char **argv, int first,
                        int *positional, sr_failure *why);

/* How an option got its value. */
typedef enum { OPTION_PRESET, OPTION_IN_FILE, OPTION_ON_LINE } option_origin;

/* options_parse that also notes where each row's value came from: origin [table.count]. */
sr_status options_parse_noting(option_table table, void *values, option_origin *origin, int argc,
                               char **argv, int first, int *positional, sr_failure *why);

/* New key of an option that was renamed, or NULL. Readers accept old keys (in a table: where no row
   has them); nothing writes them. */
const char *options_renamed(const char *key, size_t length);

/* True when the key is one of the words, separated by blanks. */
bool options_lists(const char *words, const char *key);

/* True when the row's value has an effect. */
bool options_has_use(const option *row, const void *values);

/* Rejects the first option that was given without an effect. A value from a file counts if it
   differs from `base`: files of options_dump may have all rows. */
sr_status options_check_use(option_table table, const void *values, const void *base,
                            const option_origin *origin, sr_failure *why);

/* Reads `key = value` lines of a regular file of at most 1 MiB. Errors carry path:line. */
sr_status options_read_file(option_table table, void *values, const char *path, sr_failure *why);

/* Reads such lines from memory; errors name `where` instead of a path. */
sr_status options_read_text(option_table table, void *values, const char *text, const char *where,
                            sr_failure *why);

/* True when the row's value differs from its default. */
bool options_changed(const option *row, const void *values);

/* Writes the value of one row as options_set would read it back (reals round-trip). */
void options_format(const option *row, const void *values, char *text, size_t size);

/* Writes the values that have an effect as `key = value` lines for options_read_file, without
   `config`. A comment reports omitted values. malloc'd, NULL when out of memory. */
char *options_dump(option_table table, const void *values);

/* -- reading what options_dump wrote, as of a run file, without the table of its options -- */

/* Points into the text, but for a key that has been renamed: that is the present one. A value as
 * written, in its quotes if it has any. */
typedef struct option_line {
    const char *key, *value;
    int key_length, value_length;
} option_line;

/* The next `key = value` line; advances *at (NULL: none). Skips comments and other lines. False at
   the end. */
bool options_next_line(const char **at, option_line *l);
bool options_find_line(const char *text, const char *key, int key_length, option_line *l);
/* Advances both, which are at starts of lines, past the lines that are equal there. */
void options_skip_equal(const char **a, const char **b);
/* True when the text omits options without effect: a missing one is then no difference. Older
 * texts have all options. */
bool options_left_out(const char *text);
/* The value without quotes and escapes, cut to size; "" without a value. */
void options_line_value(const char *text, const char *key, char *value, size_t size);

/* The --help section: groups, keys, types, live defaults, ranges, units. */
void options_help(option_table table, FILE *out);
/* The rows that are common. */
void options_help_common(option_table table, FILE *out);

#endif
