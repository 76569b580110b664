/* plot_files.h -- directories of templates, output files. */
#ifndef PLOT_TEMPLATE_PLOT_FILES_H
#define PLOT_TEMPLATE_PLOT_FILES_H

#include "plot/template/plot_sizes.h"
#include "statrec/base.h"

/* Directories that may hold templates, best first; NULL past the end. */
const char *plot_directory(int i, char path[PLOT_PATH]);

/* Copies to a temporary name beside the output, then renames: a file is whole or not there. */
sr_status plot_place_output(const char *from, const char *output, sr_failure *why);

#endif
