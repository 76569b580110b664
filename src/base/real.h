/* real.h -- the number type of the engine: float, or double with `make MODE=double`. */
#ifndef BASE_REAL_H
#define BASE_REAL_H

#ifdef REAL_DOUBLE
typedef double real;
#define REAL_NAME "double"
#else
typedef float real;
#define REAL_NAME "float"
#endif

#endif
