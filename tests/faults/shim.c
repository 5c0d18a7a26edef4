/* Counts every call of this process tree that changes a file system, and at the chosen one ends it or fails.

   Preloaded into the command under test and all it starts; they share one page, the file $FAULTS_PAGE.
   Writes to pipes, and to whatever stands at 1 and 2, are no changes. A call that ends its process by writing
   writes half of its bytes first: the worst that a reader can find. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, SYNC = 4, RENAME = 8, UNLINK = 16, MKDIR = 32, CHMOD = 64, TRUNCATE = 128 };
enum { COUNT, KILL, FAIL_ONCE, FAIL_ON };

struct page {
    int armed, count, at, mode, error, kinds, struck, group, trace;
};

static struct page *page;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_PAGE");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *got = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (got != MAP_FAILED) page = got;
    close(file);
}

static const char *path_of(int file, char *room, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, room, size - 1);
    room[length < 0 ? 0 : length] = 0;
    return room;
}

static void note(const char *what, const char *one, const char *other) {
    const char *path = getenv("FAULTS_TRACE");
    if (!page->trace || !path) return;
    char line[9000];
    int length = snprintf(line, sizeof line, "%d\t%s\t%s\t%s\n", getpid(), what, one ? one : "", other ? other : "");
    int file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    if (file < 0) return;
    syscall(SYS_write, file, line, length);
    syscall(SYS_close, file);
}

static void die(void) {
    if (page->group) kill(-page->group, SIGKILL);
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Tells whether the call is to fail; errno says how. `last` is done just before the end. */
static int strikes(int kind, const char *what, const char *one, const char *other, void (*last)(void *), void *with) {
    if (!page || !page->armed || !(page->kinds & kind)) return 0;
    int before = errno;
    int number = __atomic_add_fetch(&page->count, 1, __ATOMIC_SEQ_CST);
    note(what, one, other);
    errno = before;
    if (!page->at || number < page->at || (number > page->at && page->mode != FAIL_ON)) return 0;
    if (page->mode == COUNT) return 0;
    __atomic_add_fetch(&page->struck, 1, __ATOMIC_SEQ_CST);
    if (page->mode == KILL) {
        if (last) last(with);
        die();
    }
    errno = page->error;
    return 1;
}

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name); real; })
#define STRIKES(kind, one, other) strikes(kind, __func__, one, other, NULL, NULL)

static int changes(const char *path, int flags) {
    if (!strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6)) return 0;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
}

static int is_file(int file) {
    struct stat about;
    return file > 2 && !fstat(file, &about) && S_ISREG(about.st_mode);
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        MODE(flags) \
        if (changes(path, flags) && STRIKES(OPEN, path, "")) return -1; \
        return REAL(name)(path, flags, mode); }
#define OPENS_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        MODE(flags) \
        if (changes(path, flags) && STRIKES(OPEN, path, "")) return -1; \
        return REAL(name)(folder, path, flags, mode); }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

int creat(const char *path, mode_t mode) {
    return STRIKES(OPEN, path, "") ? -1 : REAL(creat)(path, mode);
}

#define OPENS_STREAM(name) \
    FILE *name(const char *path, const char *mode) { \
        if (strpbrk(mode, "wa+") && changes(path, O_WRONLY) && STRIKES(OPEN, path, "")) return NULL; \
        return REAL(name)(path, mode); }
OPENS_STREAM(fopen)
OPENS_STREAM(fopen64)

int fclose(FILE *stream) {
    int file = fileno(stream), flags = file < 0 ? 0 : fcntl(file, F_GETFL);
    char room[4200];
    int fails = file > 2 && flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && is_file(file)
        && STRIKES(WRITE, path_of(file, room, sizeof room), "");
    int why = errno, done = REAL(fclose)(stream);
    if (!fails) return done;
    errno = why;
    return EOF;
}

struct portion { int file; const void *bytes; size_t size; off_t at; };

static void half(void *given) {
    struct portion *one = given;
    if (one->at < 0) syscall(SYS_write, one->file, one->bytes, one->size / 2);
    else syscall(SYS_pwrite64, one->file, one->bytes, one->size / 2, one->at);
}

ssize_t write(int file, const void *bytes, size_t size) {
    char room[4200];
    struct portion one = {file, bytes, size, -1};
    if (page && page->armed && is_file(file)
        && strikes(WRITE, __func__, path_of(file, room, sizeof room), "", half, &one)) return -1;
    return REAL(write)(file, bytes, size);
}

#define WRITES_AT(name) \
    ssize_t name(int file, const void *bytes, size_t size, off_t at) { \
        char room[4200]; \
        struct portion one = {file, bytes, size, at}; \
        if (page && page->armed && is_file(file) \
            && strikes(WRITE, __func__, path_of(file, room, sizeof room), "", half, &one)) return -1; \
        return REAL(name)(file, bytes, size, at); }
WRITES_AT(pwrite)
WRITES_AT(pwrite64)

#define ON_FILE(type, name, kind, parameters, file, passed) \
    type name parameters { \
        char room[4200]; \
        if (page && page->armed && is_known(file) && STRIKES(kind, path_of(file, room, sizeof room), "")) return -1; \
        return REAL(name) passed; }
#define ON_PATHS(name, kind, parameters, one, other, passed) \
    int name parameters { return STRIKES(kind, one, other) ? -1 : REAL(name) passed; }

static int is_known(int file) {
    struct stat about;
    return file > 2 && !fstat(file, &about) && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode));
}

ON_FILE(ssize_t, writev, WRITE, (int file, const struct iovec *parts, int number), file, (file, parts, number))
ON_FILE(int, fsync, SYNC, (int file), file, (file))
ON_FILE(int, fdatasync, SYNC, (int file), file, (file))
ON_FILE(int, ftruncate, TRUNCATE, (int file, off_t size), file, (file, size))
ON_FILE(int, ftruncate64, TRUNCATE, (int file, off64_t size), file, (file, size))
ON_FILE(int, fchmod, CHMOD, (int file, mode_t mode), file, (file, mode))
ON_PATHS(rename, RENAME, (const char *from, const char *to), from, to, (from, to))
ON_PATHS(renameat, RENAME, (int a, const char *from, int b, const char *to), from, to, (a, from, b, to))
ON_PATHS(link, RENAME, (const char *from, const char *to), from, to, (from, to))
ON_PATHS(linkat, RENAME, (int a, const char *from, int b, const char *to, int flags), from, to, (a, from, b, to, flags))
ON_PATHS(symlink, RENAME, (const char *to, const char *from), from, to, (to, from))
ON_PATHS(unlink, UNLINK, (const char *path), path, "", (path))
ON_PATHS(unlinkat, UNLINK, (int folder, const char *path, int flags), path, "", (folder, path, flags))
ON_PATHS(rmdir, UNLINK, (const char *path), path, "", (path))
ON_PATHS(mkdir, MKDIR, (const char *path, mode_t mode), path, "", (path, mode))
ON_PATHS(mkdirat, MKDIR, (int folder, const char *path, mode_t mode), path, "", (folder, path, mode))
ON_PATHS(chmod, CHMOD, (const char *path, mode_t mode), path, "", (path, mode))
ON_PATHS(fchmodat, CHMOD, (int folder, const char *path, mode_t mode, int flags), path, "", (folder, path, mode, flags))
ON_PATHS(truncate, TRUNCATE, (const char *path, off_t size), path, "", (path, size))
