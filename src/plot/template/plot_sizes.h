/* plot_sizes.h -- lengths of names and lists in templates and tables. */
#ifndef PLOT_TEMPLATE_PLOT_SIZES_H
#define PLOT_TEMPLATE_PLOT_SIZES_H

enum {
    PLOT_PATH = 1024,
    PLOT_NAME = 64, /* as SR_NAME_SIZE */
    PLOT_COLUMNS = 256,
    PLOT_TABLES = 12,
    PLOT_WORDS = 24,
    PLOT_KEYS = 4,
    PLOT_VALUES = 12,
    PLOT_SAMPLES = 8,
    PLOT_CHOICES = 16,
    PLOT_PART = 256,
    PLOT_BUCKETS = 400, /* about two for each point of a panel three inches wide */
};

#endif
