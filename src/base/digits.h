/* digits.h -- numbers of tables as text and back: what printf("%.9g") and strtod() make of them, to the last bit, in
 * a fifth of the time. */
#ifndef BASE_DIGITS_H
#define BASE_DIGITS_H

#include <stdio.h>

enum { DIGITS_SIZE = 24 };

/* As snprintf with "%.9g"; returns the length. */
int digits_write(char text[DIGITS_SIZE], double value);
void digits_print(FILE *out, double value);
/* As strtod in the C locale. */
double digits_read(const char *text, char **end);

#endif
