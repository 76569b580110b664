/* output_file.c -- see output_file.h. */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

int output_file_create(const char *path) {
    return descriptor_above_standard(
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
}

static sr_status refuse_part(const char *part, sr_failure *why) {
    sr_fail(why, SR_EXISTS, "%s: exists", part);
    sr_hint(why, "another program is writing it, or one was killed; then remove it");
    return SR_EXISTS;
}

sr_status output_file_check(const char *part, sr_failure *why) {
    struct stat s;
    return lstat(part, &s) == 0 ? refuse_part(part, why) : SR_OK;
}

FILE *output_file_open(const char *part, const char *path, sr_failure *why) {
    const int fd = output_file_create(part);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out) return out;
    const int reason = errno;
    if (fd >= 0) close(fd), unlink(part);
    if (reason != EEXIST) {
        sr_fail(why, reason == ENOMEM ? SR_MEMORY : SR_IO, "%s: %s", path, strerror(reason));
        return NULL;
    }
    refuse_part(part, why);
    return NULL;
}

FILE *output_file_device(const char *path, sr_failure *why) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out) return out;
    sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return NULL;
}

sr_status output_file_publish(FILE *out, const char *part, const char *path, sr_status so_far,
                              sr_failure *why) {
    /* after a failed write errno is still the one of it */
    bool written = !ferror(out) && fflush(out) == 0;
    if (written && so_far == SR_OK)
        written = fsync(fileno(out)) == 0 || errno == EINVAL || errno == ENOSYS;
    int reason = errno;
    if (fclose(out) != 0 && written) written = false, reason = errno;
    if (so_far == SR_OK && written && rename(part, path) == 0) return SR_OK;
    if (so_far == SR_OK && written) reason = errno;
    unlink(part);
    if (so_far != SR_OK) return so_far;
    return sr_fail(why, SR_IO, "%s: %s", path, reason ? strerror(reason) : "write failed");
}
