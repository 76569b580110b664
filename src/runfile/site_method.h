/* site_method.h -- the method of a site: its family, the axis of its statistics, the statistics
 * that it uses (SR_FAMILIES, SR_METHOD_TEXTS of statrec/format.h). */
#ifndef RUNFILE_SITE_METHOD_H
#define RUNFILE_SITE_METHOD_H

#include "statrec/runfile.h"

/* True when `word` is one of the words of "mu,sigma2"; when every one of `some` is. */
bool method_has_word(const char *words, const char *word, size_t length);
bool method_has_words(const char *words, const char *some);
/* Fills the properties of the method from its name, for files that do not store them. */
void method_guess(sr_run_site *site);
void method_forget(sr_run_site *site); /* makes the method unknown */
/* Copies a text of a method, cut to size. */
void method_copy(char to[SR_KIND_SIZE], const char *from);

#endif
