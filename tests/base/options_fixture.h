/* options_fixture.h -- the option table and config file that the tests of options share. */
#ifndef TESTS_BASE_OPTIONS_FIXTURE_H
#define TESTS_BASE_OPTIONS_FIXTURE_H

#include "base/options/options.h"
#include "testing/check.h"

typedef struct values {
    int64_t steps, seed, any, below;
    double lr, eps, decay;
    bool augment, quiet;
    option_text name, output, method, config;
} values;

extern const option_table table;

/* The row of a key; fails the test when there is none. */
const option *row_of(const char *key);

/* Where write_config and read_config put their file. */
const char *config_path(void);
void write_config(const char *text, size_t length);
/* Defaults, then the lines of `text` through a file. */
sr_status read_config(const char *text, values *v, sr_failure *why);

#endif
