/* install_files.c -- finds files of a checkout or an installed tree relative to the program. */
#include "base/program/install_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void install_files_program_directory(char path[INSTALL_FILES_PATH]) {
    const ssize_t length = readlink("/proc/self/exe", path, INSTALL_FILES_PATH - 1);
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/');
    if (slash)
        slash[1] = 0;
    else
        path[0] = 0;
}

const char *install_files_directory(const char *variable, const char *name, int i,
                                    char path[INSTALL_FILES_PATH]) {
    static const char *const beside[] = {"..", "../../..", "../../../share", "../../../../share",
                                         "../share/statrec"};
    enum { BESIDE = sizeof beside / sizeof beside[0] };
    const char *set = getenv(variable);
    if (set && *set && i-- == 0) return snprintf(path, INSTALL_FILES_PATH, "%s", set), path;
    if (i < BESIDE) {
        install_files_program_directory(path);
        const size_t used = strlen(path);
        snprintf(path + used, INSTALL_FILES_PATH - used, "%s/%s", beside[i], name);
        return path;
    }
    if (i > BESIDE) return NULL;
    snprintf(path, INSTALL_FILES_PATH, "%s/share/statrec/%s", STATREC_PREFIX, name);
    return path;
}

sr_status install_files_find(const char *variable, const char *name, const char *file,
                             char path[2 * INSTALL_FILES_PATH], sr_failure *why) {
    char directory[INSTALL_FILES_PATH];
    for (int i = 0; install_files_directory(variable, name, i, directory); i++) {
        snprintf(path, 2 * INSTALL_FILES_PATH, "%s/%s", directory, file);
        if (access(path, R_OK) == 0) return SR_OK;
    }
    sr_fail(why, SR_IO, "cannot find %s/%s", name, file);
    sr_hint(why, "set %s to the directory %s/ of statrec", variable, name);
    return SR_IO;
}

sr_status install_files_check_file(const char *path, sr_failure *why) {
    enum { MOST = 16 << 20 };
    struct stat s;
    if (stat(path, &s) != 0) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode)) return sr_fail(why, SR_IO, "%s: %s", path, strerror(EISDIR));
    if (!S_ISREG(s.st_mode)) return sr_fail(why, SR_IO, "%s: not a regular file", path);
    if (s.st_size <= MOST) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: %lld bytes, of which %d at most are read", path,
                   (long long)s.st_size, MOST);
}
