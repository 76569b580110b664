/* recorder_state.c -- whether a call of the recorder may proceed. */
#include "record/recorder_state.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

double recorder_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

sr_status recorder_check(const sr_recorder *r) {
    return r ? r->failure.status : SR_STATE;
}

const sr_failure *sr_failed(const sr_recorder *r) {
    return r && r->failure.status != SR_OK ? &r->failure : NULL;
}

bool recorder_in_fork(sr_recorder *r) {
    if (getpid() == r->owner) return false;
    sr_fail(&r->failure, SR_STATE, "%s: belongs to process %lld, this is %lld", r->path,
            (long long)r->owner, (long long)getpid());
    r->writer.broken = true; /* the file is the parent's */
    return true;
}

bool recorder_too_late(sr_recorder *r, const char *call) {
    if (r->failure.status != SR_OK || recorder_in_fork(r)) return true;
    if (!r->started) return false;
    sr_fail(&r->failure, SR_STATE, "%s: %s after the first step", r->path, call);
    return true;
}

static bool has_control(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) return true;
    return false;
}

/* Bytes of a character of UTF-8 (RFC 3629); 0: none. base/utf8.h needs libunistring, and libstatrec
 * does not. */
static int character_bytes(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    const int least = *c == 0xe0 ? 0xa0 : *c == 0xf0 ? 0x90 : 0x80;
    const int most = *c == 0xed ? 0x9f : *c == 0xf4 ? 0x8f : 0xbf;
    if (*c < 0x80) return 1;
    if (*c < 0xc2 || *c > 0xf4 || c[1] < least || c[1] > most) return 0;
    const int bytes = *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4;
    for (int i = 2; i < bytes; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    return bytes;
}

bool recorder_is_text(const sr_recorder *r, const char *text) {
    int bytes;
    if (r->copies) return true;
    while (*text && (bytes = character_bytes(text)) > 0) text += bytes;
    return !*text;
}

sr_status recorder_check_label(sr_recorder *r, const char *kind, const char *name, const char *unit,
                               const char *definition) {
    if (!name || !*name || *name == '.' || strlen(name) >= SR_NAME_SIZE || strchr(name, '/') ||
        has_control(name) || strcmp(name, "step") == 0 || strcmp(name, "epoch") == 0)
        return sr_fail(&r->failure, SR_USAGE,
                       "%s: %s '%.80s': a name has 1 to %d bytes, no '/' and no control "
                       "characters, does not begin with '.' and is neither step nor epoch",
                       r->path, kind, name ? name : "", SR_NAME_SIZE - 1);
    if (!recorder_is_text(r, name) || !recorder_is_text(r, unit) ||
        !recorder_is_text(r, definition))
        return sr_fail(&r->failure, SR_USAGE, "%s: %s %s: name, unit or definition is not UTF-8",
                       r->path, kind, name);
    if (strlen(unit) < SR_NAME_SIZE && strlen(definition) < SR_DEFINITION_SIZE &&
        !has_control(unit) && !has_control(definition))
        return SR_OK;
    return sr_fail(&r->failure, SR_USAGE,
                   "%s: %s %s: unit of %zu bytes (< %d), definition of %zu (< %d), without control "
                   "characters",
                   r->path, kind, name, strlen(unit), SR_NAME_SIZE, strlen(definition),
                   SR_DEFINITION_SIZE);
}
