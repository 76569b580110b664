/* cpu_check.h -- whether the processor has the instructions that a program was compiled for.
 *
 * Only for code that any processor can run: functions of this header are compiled for the base
 * level, whatever the options of the compiler are. Its macros still show those options. */
#ifndef BASE_PROGRAM_CPU_CHECK_H
#define BASE_PROGRAM_CPU_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Nothing may be instrumented that runs before the sanitizers begin. */
#if defined(__x86_64__)
#define CPU_CHECK_BASE                                                                             \
    __attribute__((target("arch=x86-64"), no_sanitize("address"), no_sanitize("undefined")))
#else
#define CPU_CHECK_BASE __attribute__((no_sanitize("address"), no_sanitize("undefined")))
#endif

typedef struct cpu_feature {
    const char *name;
    bool built, has; /* the program is compiled for it; the processor has it */
} cpu_feature;

/* The first one that is missing, or NULL. */
CPU_CHECK_BASE static inline const char *cpu_check_missing(const cpu_feature *f, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (f[i].built && !f[i].has) return f[i].name;
    return NULL;
}

#if defined(__x86_64__)
/* A macro of the compiler that is not defined keeps its name, with an underscore in front. */
#define CPU_CHECK_TEXT(macro)  #macro
#define CPU_CHECK_BUILT(macro) (CPU_CHECK_TEXT(macro)[0] != '_')
#define CPU_CHECK_ROW(macro, name)                                                                 \
    { name, CPU_CHECK_BUILT(macro), __builtin_cpu_supports(name) }

/* The levels of the x86-64 psABI (3.1.1), and what -march=native adds to them. */
#define CPU_CHECK_ROWS                                                                             \
    CPU_CHECK_ROW(__SSE3__, "sse3"), CPU_CHECK_ROW(__SSSE3__, "ssse3"),                            \
        CPU_CHECK_ROW(__SSE4_1__, "sse4.1"), CPU_CHECK_ROW(__SSE4_2__, "sse4.2"),                  \
        CPU_CHECK_ROW(__POPCNT__, "popcnt"), CPU_CHECK_ROW(__AVX__, "avx"),                        \
        CPU_CHECK_ROW(__AVX2__, "avx2"), CPU_CHECK_ROW(__FMA__, "fma"),                            \
        CPU_CHECK_ROW(__BMI__, "bmi"), CPU_CHECK_ROW(__BMI2__, "bmi2"),                            \
        CPU_CHECK_ROW(__FMA4__, "fma4"), CPU_CHECK_ROW(__XOP__, "xop"),                            \
        CPU_CHECK_ROW(__AVX512F__, "avx512f"), CPU_CHECK_ROW(__AVX512CD__, "avx512cd"),            \
        CPU_CHECK_ROW(__AVX512BW__, "avx512bw"), CPU_CHECK_ROW(__AVX512DQ__, "avx512dq"),          \
        CPU_CHECK_ROW(__AVX512VL__, "avx512vl"), CPU_CHECK_ROW(__AVX512VBMI__, "avx512vbmi"),      \
        CPU_CHECK_ROW(__AVX512IFMA__, "avx512ifma"), CPU_CHECK_ROW(__AVX512VNNI__, "avx512vnni"),  \
        CPU_CHECK_ROW(__AVX512BF16__, "avx512bf16")

CPU_CHECK_BASE static inline const char *cpu_check_program(void) {
    __builtin_cpu_init();
    const cpu_feature row[] = {CPU_CHECK_ROWS};
    return cpu_check_missing(row, sizeof row / sizeof row[0]);
}
#else
static inline const char *cpu_check_program(void) {
    return NULL;
}
#endif

#endif
