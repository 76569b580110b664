/* fuzz.h -- helpers shared by the fuzz targets. A target is one file fuzz_NAME.c with
 * LLVMFuzzerTestOneInput. `make fuzz` links it with libFuzzer, every other build with replay.c,
 * which feeds it the files of corpus/NAME. A target aborts if a guarantee fails; the code under
 * test may reject an input, in one line. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/program/tool.h"
#include "statrec/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Before the first input (fuzz_hdf5.c). */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A directory of this process, in memory if possible; removed at exit. */
const char *fuzz_folder(void);
/* fuzz_folder()/NAME. Static storage, eight at a time. */
const char *fuzz_path(const char *name);
/* A file there with these bytes; its path. */
const char *fuzz_store(const char *name, const void *bytes, size_t size);

/* The files of an input: the parts between lines "%%%%". */
enum { FUZZ_PARTS = 6 };
typedef struct fuzz_part {
    const uint8_t *byte;
    size_t size;
} fuzz_part;
int fuzz_split(const uint8_t *data, size_t size, fuzz_part part[FUZZ_PARTS]);
/* Empties fuzz_folder()/NAME, or makes it; its path. */
const char *fuzz_empty_folder(const char *name);
/* Stores a part (a line with a name, then the bytes) as that file in fuzz_folder()/BELOW, at most
 * `folders` folders deep. A name that ends with "/" makes folders. Skips a name that leaves BELOW
 * or is in use. */
void fuzz_store_named(const char *below, fuzz_part part, int folders);
/* A part as a string, cut at its first zero byte; the caller frees it. */
char *fuzz_text(fuzz_part part);

/* Aborts with the message unless it holds. */
void fuzz_expect(bool holds, const char *what);
/* Aborts unless a failure is one line with a reason, and success none. */
void fuzz_expect_reason(bool failed, const sr_failure *why);

/* Runs a command of statrec with these arguments (NULL ends); discards its output. Aborts if its
 * exit status is not one of a command. */
int fuzz_command(int (*command)(const tool *), const char *const *argument);

#endif
