/* Archives of arrays: written ones are read back by us and by numpy; names and shapes at their
 * limits. A fault in a file or path gives a message of one line and leaves no file. */
#include "testing/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "base/npz/npz.h"
#include "base/npz/npz_format.h"

/* A path in the temporary directory; valid until the next call. */
static const char *path_of(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    return path;
}

static int files_in(const char *directory) {
    DIR *d = opendir(directory);
    assert_non_null(d);
    int count = 0;
    for (struct dirent *e; (e = readdir(d));) count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

static npz_array array(npz_type type, void *data, int rank, const int64_t *dim) {
    npz_array a = {.type = type, .rank = rank, .data = data};
    for (int i = 0; i < rank; i++) a.dim[i] = dim[i];
    return a;
}

/* -- the system's calls: their order, and one that fails */

static struct {
    int synchronised, named; /* synced files at the last rename */
    int error;               /* of fsync; 0: none */
} seen;

/* These replace the system's functions. */
int fsync(int fd) {
    struct stat s;
    seen.synchronised += fstat(fd, &s) == 0 && s.st_size > 0;
    errno = seen.error;
    return seen.error ? -1 : 0;
}

int rename(const char *from, const char *to) {
    seen.named = seen.synchronised;
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* -- one array of each type */

static float floats[24] = {1.5f, -0.f, 1e-45f, 3.4028235e38f};
static double doubles[3] = {0.1, -1e308, 5e-324};
static int32_t ints[6] = {0, -1, INT32_MAX, INT32_MIN, 7, 8};
static int64_t wide[1] = {INT64_MIN};
static uint8_t bytes[4] = {0, 1, 255, 128};

typedef struct sample {
    const char *name;
    npz_array array;
    size_t size;
} sample;

enum { SAMPLES = 7 };

static void make_samples(sample s[SAMPLES]) {
    const int64_t image[] = {2, 3, 4, 1}, column[] = {3}, matrix[] = {2, 3}, none[] = {3, 0};
    floats[4] = NAN;
    floats[5] = -INFINITY;
    s[0] = (sample){"encoder.0.attention.q.weight", array(NPZ_FLOAT32, floats, 4, image),
                    sizeof floats};
    s[1] = (sample){"update0/x", array(NPZ_FLOAT64, doubles, 1, column), sizeof doubles};
    s[2] = (sample){"i", array(NPZ_INT32, ints, 2, matrix), sizeof ints};
    s[3] = (sample){"number", array(NPZ_INT64, wide, 0, NULL), sizeof wide};
    s[4] = (sample){"\xc3\xa4.mask", array(NPZ_UINT8, bytes, 3, (int64_t[]){1, 4, 1}), 4};
    s[5] = (sample){"nothing", array(NPZ_FLOAT32, NULL, 2, none), 0};
    s[6] = (sample){"one", array(NPZ_FLOAT32, floats, 1, (int64_t[]){1}), 4};
}

static void write_samples(const char *path, bool force) {
    sample s[SAMPLES];
    sr_failure why = {0};
    make_samples(s);
    npz_writer *w = npz_create(path, force, &why);
    check_ok(why.status, &why);
    for (int i = 0; i < SAMPLES; i++) check_ok(npz_add(w, s[i].name, &s[i].array, &why), &why);
    assert_int_equal(npz_added(w), SAMPLES);
    check_ok(npz_write(w, &why), &why);
}

static void check_samples(const char *path) {
    sample s[SAMPLES];
    sr_failure why = {0};
    make_samples(s);
    npz_reader *r = npz_open(path, &why);
    check_ok(why.status, &why);
    assert_int_equal(npz_arrays(r), SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        npz_array a;
        assert_string_equal(npz_name(r, i), s[i].name);
        check_ok(npz_read(r, s[i].name, &a, &why), &why);
        assert_int_equal(a.type, s[i].array.type);
        assert_int_equal(a.rank, s[i].array.rank);
        for (int k = 0; k < a.rank; k++) assert_int_equal(a.dim[k], s[i].array.dim[k]);
        assert_non_null(a.data);
        if (s[i].size) assert_memory_equal(a.data, s[i].array.data, s[i].size);
        free(a.data);
    }
    assert_string_equal(npz_name(r, SAMPLES), "");
    assert_string_equal(npz_name(r, -1), "");
    npz_close(r);
}

static void round_trip(void **state) {
    (void)state;
    const char *path = path_of("round.npz");
    write_samples(path, false);
    check_samples(path);
}

static char *file_bytes(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(*size + 1);
    assert_int_equal(fread(text, 1, *size, f), *size);
    fclose(f);
    return text;
}

static void write_bytes(const char *path, const char *text, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void same_bytes(void **state) {
    (void)state;
    size_t size[2];
    write_samples(path_of("a.npz"), true);
    char *a = file_bytes(path_of("a.npz"), &size[0]);
    write_samples(path_of("a.npz"), true); /* replaces itself */
    char *b = file_bytes(path_of("a.npz"), &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, size[0]);
    free(a);
    free(b);
}

/* The header in its documented format; the data starts at a multiple of 64 bytes in the entry. */
static void header_bytes(void **state) {
    (void)state;
    static const char want[] = "\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, "
                               "'shape': (2, 3, 4, 1), }";
    size_t size;
    write_samples(path_of("header.npz"), true);
    char *text = file_bytes(path_of("header.npz"), &size);
    const char *at = memchr(text, '\x93', size);
    assert_non_null(at);
    assert_memory_equal(at, want, sizeof want - 1);
    assert_int_equal(at[127], '\n');
    assert_memory_equal(at + 128, floats, sizeof floats);
    free(text);
}

/* -- numpy */

static const char *find_python(void) {
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    for (int i = 0; i < 2; i++) {
        char command[256];
        snprintf(command, sizeof command, "%s -c 'import numpy' 2>/dev/null", pythons[i]);
        if (system(command) == 0) return pythons[i];
    }
    print_message("skipped: no python3 with numpy\n");
    return NULL;
}

static void run_python(const char *python, const char *program) {
    const char *script = path_of("program.py");
    char command[4500];
    write_bytes(script, program, strlen(program));
    snprintf(command, sizeof command, "cd %s && %s program.py", check_temporary(), python);
    if (system(command) != 0) fail_msg("python failed");
}

static void numpy_reads(void **state) {
    (void)state;
    const char *python = find_python();
    if (!python) skip();
    write_samples(path_of("numpy.npz"), true);
    run_python(python, "import numpy as np\n"
                       "f = np.load('numpy.npz', allow_pickle=False)\n"
                       "x = f['encoder.0.attention.q.weight']\n"
                       "assert x.shape == (2, 3, 4, 1) and x.dtype == '<f4', (x.shape, x.dtype)\n"
                       "assert x.flat[0] == 1.5 and np.signbit(x.flat[1]) and np.isnan(x.flat[4])\n"
                       "assert f['update0/x'].tolist() == [0.1, -1e308, 5e-324]\n"
                       "assert f['i'].tolist() == [[0, -1, 2**31-1], [-2**31, 7, 8]]\n"
                       "assert f['number'].shape == () and int(f['number']) == -2**63\n"
                       "assert f['\\u00e4.mask'].tolist() == [[[0], [1], [255], [128]]]\n"
                       "assert f['nothing'].shape == (3, 0) and f['one'].shape == (1,)\n"
                       "assert len(f.files) == 7 and f['i'].flags['C_CONTIGUOUS']\n");
}

/* numpy's archives, compressed or not, and arrays that we do not read. */
static void numpy_writes(void **state) {
    (void)state;
    const char *python = find_python();
    if (!python) skip();
    run_python(python, "import numpy as np\n"
                       "a = dict(x=np.arange(6, dtype='f4').reshape(2, 3), n=np.int64(-5),\n"
                       "         m=np.array([1, 0], 'u1'), t=np.arange(6.).reshape(2, 3).T,\n"
                       "         b=np.arange(3, dtype='>i4'), c=np.zeros(2, complex))\n"
                       "np.savez('plain.npz', **a); np.savez_compressed('small.npz', **a)\n");
    static const char *const files[] = {"plain.npz", "small.npz"};
    for (int i = 0; i < 2; i++) {
        sr_failure why = {0}, no_order = {0}, no_type = {0};
        npz_reader *r = npz_open(path_of(files[i]), &why);
        npz_array a;
        check_ok(npz_read(r, "x", &a, &why), &why);
        assert_int_equal(a.dim[1], 3);
        check_equals(((float *)a.data)[5], 5);
        free(a.data);
        check_ok(npz_read(r, "n", &a, &why), &why);
        assert_true(a.rank == 0 && *(int64_t *)a.data == -5);
        free(a.data);
        check_ok(npz_read(r, "m", &a, &why), &why);
        assert_true(a.type == NPZ_UINT8 && *(uint8_t *)a.data == 1);
        free(a.data);
        npz_read(r, "t", &a, &no_order);
        check_failure(&no_order, SR_FORMAT, "column-major");
        npz_read(r, "b", &a, &no_type);
        check_failure(&no_type, SR_FORMAT, "numbers of type '>i4'");
        npz_close(r);
    }
}

/* -- errors */

static void refuses(const char *path, bool force, sr_status status, const char *part) {
    sr_failure why = {0};
    assert_null(npz_create(path, force, &why));
    check_failure(&why, status, part);
}

static void places(void **state) {
    (void)state;
    char directory[4096], link[4200];
    snprintf(directory, sizeof directory, "%s", path_of("place"));
    snprintf(link, sizeof link, "%s/link.npz", directory);
    assert_int_equal(mkdir(directory, 0700), 0);
    refuses(path_of("nowhere/x.npz"), false, SR_IO, "nowhere/x.npz: No such file or directory");
    refuses("", false, SR_USAGE, "empty name");
    refuses(directory, true, SR_EXISTS, "is not a regular file");
    refuses("/dev/null", true, SR_EXISTS, "is not a regular file");
    assert_int_equal(symlink("/dev/null", link), 0);
    refuses(link, true, SR_EXISTS, "is not a regular file");
    assert_int_equal(files_in(directory), 1);
    write_samples(path_of("place/a.npz"), false);
    refuses(path_of("place/a.npz"), false, SR_EXISTS, "a.npz: exists");
    check_samples(path_of("place/a.npz"));
    write_bytes(path_of("place/b.npz.part"), "killed", 6);
    refuses(path_of("place/b.npz"), true, SR_EXISTS, "b.npz.part: exists");
    assert_int_equal(files_in(directory), 3);
}

static void check_bytes(const char *path, const char *want, size_t length) {
    size_t size;
    char *text = file_bytes(path, &size);
    assert_int_equal(size, length);
    assert_memory_equal(text, want, length);
    free(text);
}

/* A file created while the arrays were gathered stays unchanged. */
static void appeared(void **state) {
    (void)state;
    const char *path = path_of("later.npz");
    sr_failure why = {0};
    npz_writer *w = npz_create(path, false, &why);
    npz_array a = array(NPZ_INT32, ints, 0, NULL);
    check_ok(npz_add(w, "a", &a, &why), &why);
    write_bytes(path, "precious", 8);
    npz_write(w, &why);
    check_failure(&why, SR_EXISTS, "later.npz: exists");
    check_bytes(path, "precious", 8);
}

/* The same for the .part file, which is written first. */
static void part_appeared(void **state) {
    (void)state;
    sr_failure why = {0};
    npz_writer *w = npz_create(path_of("soon.npz"), true, &why);
    write_bytes(path_of("soon.npz.part"), "precious", 8);
    npz_write(w, &why);
    check_failure(&why, SR_EXISTS, "soon.npz.part: exists");
    check_bytes(path_of("soon.npz.part"), "precious", 8);
    assert_int_equal(access(path_of("soon.npz"), F_OK), -1);
}

static void names(void **state) {
    (void)state;
    char name[600];
    sr_failure taken = {0}, empty = {0}, longer = {0}, why = {0};
    npz_array a = array(NPZ_INT32, ints, 0, NULL);
    npz_writer *w = npz_create(path_of("names.npz"), true, &why);
    check_ok(npz_add(w, "a", &a, &why), &why);
    npz_add(w, "a", &a, &taken);
    check_failure(&taken, SR_IO, "names.npz: a.npy: File already exists");
    npz_add(w, "", &a, &empty);
    check_failure(&empty, SR_USAGE, "name has 0 bytes");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    npz_add(w, name, &a, &longer);
    check_failure(&longer, SR_USAGE, "name has 599 bytes");
    assert_int_equal(npz_added(w), 1);
    npz_abandon(w);
    assert_int_equal(access(path_of("names.npz"), F_OK), -1);
}

/* A disk that is full after `limit` bytes: a message of one line, the old file, and no other. */
static void full_disk(rlim_t limit) {
    char directory[4096];
    snprintf(directory, sizeof directory, "%s", path_of("full"));
    mkdir(directory, 0700);
    write_samples(path_of("full/a.npz"), true);
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){limit, before.rlim_max};
    float *zero = calloc(100000, sizeof *zero);
    npz_array a = array(NPZ_FLOAT32, zero, 1, (int64_t[]){100000});
    sr_failure why = {0};
    npz_writer *w = npz_create(path_of("full/a.npz"), true, &why);
    check_ok(npz_add(w, "zero", &a, &why), &why);
    check_ok(npz_add(w, "again", &a, &why), &why);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    npz_write(w, &why);
    setrlimit(RLIMIT_FSIZE, &before);
    free(zero);
    check_failure(&why, SR_IO, "a.npz: File too large");
    check_samples(path_of("full/a.npz"));
    assert_int_equal(files_in(directory), 1);
}

static void full_disks(void **state) {
    (void)state;
    full_disk(0);
    full_disk(4096);
    full_disk(800340); /* the numbers fit, the archive's directory does not */
    full_disk(800400);
}

/* An archive gets its name after its bytes are on disk; a failed one gets no name. */
static void synchronised(void **state) {
    (void)state;
    char path[4096];
    assert_int_equal(mkdir(path_of("power"), 0700), 0);
    snprintf(path, sizeof path, "%s", path_of("power/it.npz"));
    seen.synchronised = seen.named = 0;
    write_samples(path, false);
    assert_int_equal(seen.named, 1);
    for (int i = 0; i < 2; i++) { /* an unsupported fsync is not an error */
        seen.error = i ? ENOSYS : EINVAL;
        write_samples(path, true);
    }
    seen.error = EIO;
    npz_writer *w = npz_create(path, true, NULL);
    sr_failure why = {0};
    assert_int_equal(npz_write(w, &why), SR_IO);
    check_failure(&why, SR_IO, "Input/output error");
    seen.error = 0;
    check_samples(path); /* the previous archive */
    assert_int_equal(files_in(path_of("power")), 1);
}

/* Cuts and changed bytes are detected or harmless; nothing crashes. */
static void damaged(void **state) {
    (void)state;
    size_t size;
    write_samples(path_of("whole.npz"), true);
    char *text = file_bytes(path_of("whole.npz"), &size);
    char path[4096];
    snprintf(path, sizeof path, "%s", path_of("broken.npz"));
    int refused = 0;
    for (size_t i = 0; i < 2 * size; i += 7) {
        char *copy = malloc(size);
        memcpy(copy, text, size);
        copy[i / 2] ^= 0x21;
        write_bytes(path, copy, i % 2 ? size : i / 2);
        free(copy);
        sr_failure why = {0};
        npz_reader *r = npz_open(path, &why);
        sample s[SAMPLES];
        make_samples(s);
        for (int k = 0; r && k < SAMPLES; k++) {
            npz_array a;
            if (npz_read(r, s[k].name, &a, &why) != SR_OK) continue;
            if (s[k].size) assert_memory_equal(a.data, s[k].array.data, s[k].size);
            free(a.data);
        }
        refused += why.status != SR_OK;
        npz_close(r);
    }
    free(text);
    assert_true(refused > 100);
}

static void no_archive(void **state) {
    (void)state;
    sr_failure absent = {0}, text = {0}, name = {0}, why = {0};
    npz_array a;
    assert_null(npz_open(path_of("absent.npz"), &absent));
    check_failure(&absent, SR_IO, "absent.npz: No such file");
    write_bytes(path_of("text.npz"), "hello, world; hello, world", 26);
    assert_null(npz_open(path_of("text.npz"), &text));
    check_failure(&text, SR_IO, "text.npz: Not a zip archive");
    write_samples(path_of("fine.npz"), true);
    npz_reader *r = npz_open(path_of("fine.npz"), &why);
    npz_read(r, "other", &a, &name);
    check_failure(&name, SR_IO, "fine.npz: other.npy: No such file");
    npz_close(r);
}

/* -- declared sizes without data */

static void write_four(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

/* An archive of one array whose directory declares `size` bytes. */
static void claim_size(const char *path, uint32_t size) {
    static uint8_t whole[4096];
    sr_failure why = {0};
    npz_writer *w = npz_create(path, true, &why);
    assert_non_null(w);
    const npz_array a = array(NPZ_FLOAT64, doubles, 1, (const int64_t[]){3});
    check_ok(npz_add(w, "a", &a, &why), &why);
    check_ok(npz_write(w, &why), &why);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    const size_t size_of_file = fread(whole, 1, sizeof whole, f);
    for (size_t i = 0; i + 4 < size_of_file; i++) {
        if (!memcmp(whole + i, "PK\3\4", 4)) write_four(whole + i + 22, size);
        if (!memcmp(whole + i, "PK\1\2", 4)) write_four(whole + i + 24, size);
    }
    rewind(f);
    assert_int_equal(fwrite(whole, 1, size_of_file, f), size_of_file);
    assert_int_equal(fclose(f), 0);
}

static void claimed_sizes(void **state) {
    (void)state;
    sr_failure why = {0};
    npz_array a;
    claim_size(path_of("claims.npz"), 0xf0000000u);
    npz_reader *r = npz_open(path_of("claims.npz"), &why);
    assert_non_null(r);
    assert_int_equal(npz_shape(r, "a", &a, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "4026531840 bytes, of which 152 are stored");
    why = (sr_failure){0};
    assert_int_equal(npz_read(r, "a", &a, &why), SR_FORMAT);
    npz_close(r);
}

static size_t put_number(uint8_t *to, int size, uint64_t value) {
    for (int i = 0; i < size; i++) to[i] = (uint8_t)(value >> 8 * i);
    return (size_t)size;
}

/* The part shared by both headers of a forged entry. */
static size_t put_forged(uint8_t *to, int flags, int method) {
    size_t n = put_number(to, 2, 45);
    n += put_number(to + n, 2, (uint64_t)flags);
    n += put_number(to + n, 2, (uint64_t)method);
    n += put_number(to + n, 8, 0x21 << 16); /* time, day, checksum */
    n += put_number(to + n, 8, UINT64_MAX); /* sizes: of 64 bits */
    n += put_number(to + n, 2, 5);
    return n + put_number(to + n, 2, 20);
}

static size_t put_forged_name(uint8_t *to, uint64_t size, uint64_t stored) {
    memcpy(to, "a.npy", 5);
    size_t n = 5 + put_number(to + 5, 2, 1);
    n += put_number(to + n, 2, 16);
    n += put_number(to + n, 8, size);
    return n + put_number(to + n, 8, stored);
}

/* An archive without data whose directory lists a.npy with these sizes. */
static void forge(const char *path, int flags, int method, uint64_t stored, uint64_t size) {
    uint8_t file[512] = "PK\3\4";
    size_t n = 4 + put_forged(file + 4, flags, method);
    n += put_forged_name(file + n, size, stored);
    const size_t directory = n;
    memcpy(file + n, "PK\1\2", 4);
    n += 4 + put_number(file + n + 4, 2, 45);
    n += put_forged(file + n, flags, method);
    n += put_number(file + n, 8, 0), n += put_number(file + n, 6, 0); /* comment to offset */
    n += put_forged_name(file + n, size, stored);
    const size_t end = n;
    memcpy(file + n, "PK\5\6", 4);
    n += 4 + put_number(file + n + 4, 4, 0);
    n += put_number(file + n, 2, 1), n += put_number(file + n, 2, 1);
    n += put_number(file + n, 4, end - directory), n += put_number(file + n, 4, directory);
    n += put_number(file + n, 2, 0);
    write_bytes(path, (const char *)file, n);
}

/* Entries that are neither stored nor deflated, or have impossible sizes: nothing is read. */
static void forged_entries(void **state) {
    (void)state;
    static const struct {
        int flags, method;
        uint64_t stored, size;
        const char *part;
    } entry[] = {
        {1, 0, 152, 152, "a.npy: neither stored nor deflated"}, /* encrypted */
        {0, 12, 152, 152, "a.npy: neither stored nor deflated"},
        {0, 8, 1 << 17, 1 << 27, "a.npy: unpacks to 134217728 bytes; the archive has 1"},
        {0, 8, UINT64_C(1) << 62, UINT64_C(1) << 62, "unpacks to 4611686018427387904 bytes"},
        {0, 8, UINT64_MAX / 1032, INT64_MAX, "9223372036854775807 bytes, of which"},
    };
    for (size_t i = 0; i < sizeof entry / sizeof *entry; i++) {
        sr_failure why = {0};
        npz_array a;
        forge(path_of("forged.npz"), entry[i].flags, entry[i].method, entry[i].stored,
              entry[i].size);
        npz_reader *r = npz_open(path_of("forged.npz"), &why);
        check_ok(why.status, &why);
        npz_read(r, "a", &a, &why);
        check_failure(&why, SR_FORMAT, entry[i].part);
        npz_close(r);
    }
}

/* A shape that is longer than the bytes read for it. */
static void long_array(void **state) {
    (void)state;
    enum { LONG = 20000 };
    sr_failure why = {0};
    npz_array a = array(NPZ_FLOAT64, calloc(LONG, sizeof(double)), 1, (int64_t[]){LONG}), read;
    ((double *)a.data)[LONG - 1] = 7;
    npz_writer *w = npz_create(path_of("long.npz"), true, &why);
    check_ok(npz_add(w, "a", &a, &why), &why);
    check_ok(npz_write(w, &why), &why);
    npz_reader *r = npz_open(path_of("long.npz"), &why);
    check_ok(npz_shape(r, "a", &read, &why), &why);
    assert_int_equal(read.dim[0], LONG);
    check_ok(npz_read(r, "a", &read, &why), &why);
    check_equals(((double *)read.data)[LONG - 1], 7);
    npz_close(r);
    free(a.data), free(read.data);
}

/* An archive with a.npy, whose header declares six numbers of four bytes. */
static void write_six(const char *path, size_t size) {
    static char entry[NPY_HEADER_MAX + 64];
    const npz_array six = array(NPZ_FLOAT32, NULL, 2, (int64_t[]){2, 3});
    const size_t header = npy_write_header(entry, &six);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(zip);
    zip_source_t *source = zip_source_buffer(zip, entry, header + size, 0);
    assert_true(zip_file_add(zip, "a.npy", source, ZIP_FL_ENC_UTF_8) >= 0);
    assert_int_equal(zip_close(zip), 0);
}

/* The shape of an entry is checked against its bytes before any read. */
static void other_sizes_than_the_shape(void **state) {
    (void)state;
    const size_t size[] = {24, 0, 20, 23, 25, 28, 48};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        sr_failure why = {0}, again = {0};
        npz_array a = {0};
        char text[80];
        write_six(path_of("six.npz"), size[i]);
        npz_reader *r = npz_open(path_of("six.npz"), &why);
        assert_non_null(r);
        assert_int_equal(npz_shape(r, "a", &a, &why), i ? SR_FORMAT : SR_OK);
        assert_int_equal(npz_read(r, "a", &a, &again), i ? SR_FORMAT : SR_OK);
        snprintf(text, sizeof text, "%zu bytes of numbers, its shape wants 24", size[i]);
        if (i) check_failure(&why, SR_FORMAT, text), check_failure(&again, SR_FORMAT, text);
        if (!i) free(a.data);
        npz_close(r);
    }
}

static void no_file(void **state) {
    (void)state;
    sr_failure why = {0};
    assert_int_equal(mkfifo(path_of("fifo.npz"), 0600), 0);
    assert_null(npz_open(path_of("fifo.npz"), &why));
    check_failure(&why, SR_IO, "not a regular file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),     cmocka_unit_test(same_bytes),
        cmocka_unit_test(header_bytes),   cmocka_unit_test(numpy_reads),
        cmocka_unit_test(numpy_writes),   cmocka_unit_test(places),
        cmocka_unit_test(appeared),       cmocka_unit_test(part_appeared),
        cmocka_unit_test(names),          cmocka_unit_test(full_disks),
        cmocka_unit_test(synchronised),   cmocka_unit_test(damaged),
        cmocka_unit_test(no_archive),     cmocka_unit_test(claimed_sizes),
        cmocka_unit_test(no_file),        cmocka_unit_test(other_sizes_than_the_shape),
        cmocka_unit_test(forged_entries), cmocka_unit_test(long_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
