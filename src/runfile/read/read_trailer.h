/* read_trailer.h -- the trailer of a file that is being opened, and the damage that it repairs or
   shows. */
#ifndef RUNFILE_READ_READ_TRAILER_H
#define RUNFILE_READ_READ_TRAILER_H

#include "runfile/read/file/reader.h"

/* Fills f->end. */
sr_status reader_load_trailer(sr_runfile *f, sr_failure *why);
/* Once the file is open: adds to the damage list data read from its backup copy, damaged backup
 * copies, and a damaged trailer. */
sr_status reader_report_trailer(sr_runfile *f, sr_failure *why);
/* Whether the file is finished, and all of its metadata are as they were written. */
bool reader_is_intact(const sr_runfile *f);
/* Size, time of change in seconds and ns, and checksum of the trailer. False for a file that is not
 * intact, or that another has replaced since it was opened. */
enum { READER_IDENTITY = 4 };
bool reader_identify(const sr_runfile *f, uint64_t identity[READER_IDENTITY]);
/* Verifies the bytes that were not read yet; calls report for each fault. */
void reader_verify_trailer(const sr_runfile *f, void (*report)(void *context, sr_failure *why),
                           void *context);

#endif
