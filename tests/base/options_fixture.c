#include "options_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(values, field)

static const option rows[] = {
    {"Training", "max-steps", 's', OPTION_INT, AT(steps), "100", 1, 1000, "steps", NULL,
     .help = "stop after this many updates"},
    {"Training", "seed", 0, OPTION_INT, AT(seed), "1", 0, INFINITY, "", NULL,
     .help = "seed of the run"},
    {"Training", "any", 0, OPTION_INT, AT(any), "0", 0, 0, "", NULL,
     .help = "a number without range"},
    {"Training", "below", 0, OPTION_INT, AT(below), "-1", -INFINITY, 0, "", NULL,
     .help = "not above 0"},
    {"Training", "lr", 0, OPTION_REAL, AT(lr), "0.1", 0, 10, "1", NULL, .help = "learning rate"},
    {"Training", "eps", 0, OPTION_REAL, AT(eps), "nan", 0, 1, "", NULL,
     .help = "nan: the method's own"},
    {"Training", "decay", 0, OPTION_REAL, AT(decay), "-0.5", 0, 0, "", NULL,
     .help = "without range"},
    {"Training", "augment", 0, OPTION_FLAG, AT(augment), "yes", 0, 0, "", NULL,
     .help = "crop and mirror"},
    {"Output", "quiet", 'q', OPTION_FLAG, AT(quiet), "no", 0, 0, "", NULL,
     .help = "no progress line"},
    {"Output", "name", 0, OPTION_TEXT, AT(name), "", 0, 0, "", NULL, .help = "name of the run"},
    {"Output", "output", 'o', OPTION_TEXT, AT(output), "run.h5", 0, 0, "", NULL,
     .help = "run file"},
    {"Output", "method", 0, OPTION_CHOICE, AT(method), "bn", 0, 0, "", "bn|ln|groupnorm",
     .help = "normalization"},
    {"Output", "config", 'c', OPTION_TEXT, AT(config), "", 0, 0, "", NULL,
     .help = "read options from a file"},
};
const option_table table = {rows, sizeof rows / sizeof rows[0]};

const option *row_of(const char *key) {
    for (int i = 0; i < table.count; i++)
        if (strcmp(rows[i].key, key) == 0) return &rows[i];
    fail_msg("no row %s", key);
    return NULL;
}

const char *config_path(void) {
    static char path[4200];
    snprintf(path, sizeof path, "%s/train.conf", check_temporary());
    return path;
}

void write_config(const char *text, size_t length) {
    FILE *f = fopen(config_path(), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

sr_status read_config(const char *text, values *v, sr_failure *why) {
    write_config(text, strlen(text));
    memset(v, 0, sizeof *v);
    *why = (sr_failure){0};
    options_set_defaults(table, v);
    return options_read_file(table, v, config_path(), why);
}
