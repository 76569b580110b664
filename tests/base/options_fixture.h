/* options_fixture.h -- the option table and config file shared by the tests of options. */
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

/* The row of a key; fails the test if the key is unknown. */
const option *row_of(const char *key);

/* The file of write_config and read_config. */
const char *config_path(void);
void write_config(const char *text, size_t length);
/* Defaults, then the lines of `text`, read from a file. */
sr_status read_config(const char *text, values *v, sr_failure *why);

#endif
