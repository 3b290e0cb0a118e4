/* Fails, or kills the process at, the n-th system call that changes a file below one folder.
 *
 * Preloaded (LD_PRELOAD) into the program under test, which arms it by fault_arm(). Calls on pipes, terminals and
 * files elsewhere are not counted: only what a command does to the folders it works in.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum mode { COUNT, FAIL, KILL };

static char root[PATH_MAX];
static size_t root_length = 0; /* 0: not armed */
static long fault_at = 0;
static enum mode fault_mode = COUNT;
static long own_counter = 0;
static long *counter = &own_counter; /* in memory that the parent shares, so that it survives a kill */

void fault_arm(const char *folder, long nth, int mode, long *shared_counter) {
    strncpy(root, folder, sizeof root - 1);
    fault_at = nth;
    fault_mode = (enum mode)mode;
    counter = shared_counter;
    *counter = 0;
    root_length = strlen(root);
}

/* Returns 1 where the call is to fail. Threads count together. */
static int is_fault(void) {
    if (__atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST) != fault_at || fault_mode == COUNT)
        return 0;
    if (fault_mode == KILL)
        kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return 1;
}

static int is_below_root(const char *path) {
    char absolute[PATH_MAX];
    if (!root_length || path == NULL)
        return 0;
    if (path[0] != '/') { /* every command runs with the root as its working directory */
        if (getcwd(absolute, sizeof absolute) == NULL)
            return 0;
        return strncmp(absolute, root, root_length) == 0;
    }
    return strncmp(path, root, root_length) == 0;
}

static int is_open_below_root(int fd) {
    char link[64], target[PATH_MAX];
    ssize_t length;
    if (!root_length)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, target, sizeof target - 1);
    if (length <= 0)
        return 0;
    target[length] = 0;
    return strncmp(target, root, root_length) == 0;
}

#define ORIGINAL(type, name, ...) \
    static type (*original)(__VA_ARGS__); \
    if (!original) \
        original = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define ON_FD(type, name, parameters, arguments, ...) \
    type name parameters { \
        ORIGINAL(type, name, __VA_ARGS__); \
        if (is_open_below_root(fd) && is_fault()) \
            return -1; \
        return original arguments; \
    }

ON_FD(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), int, const void *, size_t)
ON_FD(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), int, const void *, size_t, off_t)
ON_FD(ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at), int, const void *, size_t, off64_t)
ON_FD(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n), int, const struct iovec *, int)
ON_FD(int, fsync, (int fd), (fd), int)
ON_FD(int, fdatasync, (int fd), (fd), int)
ON_FD(int, ftruncate, (int fd, off_t length), (fd, length), int, off_t)
ON_FD(int, ftruncate64, (int fd, off64_t length), (fd, length), int, off64_t)

#define ON_PATH(name, parameters, arguments, path, ...) \
    int name parameters { \
        ORIGINAL(int, name, __VA_ARGS__); \
        if (is_below_root(path) && is_fault()) \
            return -1; \
        return original arguments; \
    }

ON_PATH(rename, (const char *from, const char *to), (from, to), to, const char *, const char *)
ON_PATH(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), to, int, const char *, int, const char *)
ON_PATH(link, (const char *from, const char *to), (from, to), to, const char *, const char *)
ON_PATH(linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), to, int, const char *, int, const char *, int)
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode), path, const char *, mode_t)
ON_PATH(mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), path, int, const char *, mode_t)

/* Opening counts where it may create a file. */
#define ON_OPEN(name) \
    int name(const char *path, int flags, ...) { \
        mode_t mode = 0; \
        va_list rest; \
        ORIGINAL(int, name, const char *, int, ...); \
        va_start(rest, flags); \
        if (flags & (O_CREAT | O_TMPFILE)) \
            mode = va_arg(rest, mode_t); \
        va_end(rest); \
        if ((flags & O_CREAT) && is_below_root(path) && is_fault()) \
            return -1; \
        return original(path, flags, mode); \
    }
ON_OPEN(open)
ON_OPEN(open64)

#define ON_OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        mode_t mode = 0; \
        va_list rest; \
        ORIGINAL(int, name, int, const char *, int, ...); \
        va_start(rest, flags); \
        if (flags & (O_CREAT | O_TMPFILE)) \
            mode = va_arg(rest, mode_t); \
        va_end(rest); \
        if ((flags & O_CREAT) && is_below_root(path) && is_fault()) \
            return -1; \
        return original(at, path, flags, mode); \
    }
ON_OPENAT(openat)
ON_OPENAT(openat64)
