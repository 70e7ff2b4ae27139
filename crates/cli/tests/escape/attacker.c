// One attempt to get out of the walls. Ends with 0 if it got through and 1 if it was stopped; what
// stopped it is on standard output. In C, for many of these calls have no safe form elsewhere.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int through(long result) {
    if (result >= 0) {
        printf("got through\n");
        return 0;
    }
    printf("%s\n", strerrorname_np(errno));
    return 1;
}

static int can_read(const char *path) {
    char byte;
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) return through(-1);
    return through(read(fd, &byte, 1) == 1 ? 0 : -1);
}

static int can_open(const char *path, int flags) { return through(open(path, flags, 0600)); }

static int can_connect(int family, int kind, const void *address, socklen_t size) {
    int fd = socket(family, kind, 0);
    if (fd < 0) return through(-1);
    if (kind == SOCK_DGRAM) return through(sendto(fd, "x", 1, 0, address, size));
    return through(connect(fd, address, size));
}

static int inet(int kind, const char *to, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, to, &address.sin_addr);
    return can_connect(AF_INET, kind, &address, sizeof address);
}

static int local(const char *path, int abstract) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path + abstract, path, sizeof address.sun_path - 2);
    socklen_t size = offsetof(struct sockaddr_un, sun_path) + abstract + strlen(path);
    return can_connect(AF_UNIX, SOCK_STREAM, &address, size);
}

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    const char *attempt = argv[1];
    const char *to = argc > 2 ? argv[2] : "";
    const char *more = argc > 3 ? argv[3] : "";
    int number = atoi(to);
    alarm(60);

    // Files.
    if (is(attempt, "read")) return can_read(to);
    if (is(attempt, "write")) return can_open(to, O_WRONLY);
    if (is(attempt, "create")) return can_open(to, O_WRONLY | O_CREAT | O_EXCL);
    if (is(attempt, "update")) return can_open(to, O_RDWR);
    if (is(attempt, "stat")) { struct stat it; return through(stat(to, &it)); }
    if (is(attempt, "chmod")) return through(chmod(to, 0666));
    if (is(attempt, "setxattr")) return through(setxattr(to, "user.x", "x", 1, 0));
    if (is(attempt, "utimes")) return through(utimes(to, NULL));
    if (is(attempt, "truncate")) return through(truncate(to, 0));
    if (is(attempt, "unlink")) return through(unlink(to));
    if (is(attempt, "mkdir")) return through(mkdir(to, 0700));
    if (is(attempt, "rename")) return through(rename(to, more));
    if (is(attempt, "link")) return through(link(to, more));
    if (is(attempt, "watch")) return through(inotify_add_watch(inotify_init1(0), to, IN_ALL_EVENTS));
    if (is(attempt, "symlink")) {
        if (symlink(to, more) < 0) return through(-1);
        return can_read(more);
    }
    if (is(attempt, "mknod")) {
        if (mknod(to, S_IFCHR | 0600, makedev(1, 1)) < 0) return through(-1);
        return can_open(to, O_RDONLY);
    }
    if (is(attempt, "execute")) { execl(to, to, (char *)NULL); return through(-1); }
    if (is(attempt, "descriptor")) { char byte; return through(pread(number, &byte, 1, 0)); }
    if (is(attempt, "handle")) {
        struct { struct file_handle head; unsigned char bytes[128]; } it = {.head.handle_bytes = 128};
        int mount;
        if (name_to_handle_at(AT_FDCWD, to, &it.head, &mount, 0) < 0) return through(-1);
        return through(open_by_handle_at(AT_FDCWD, &it.head, O_RDONLY));
    }
    if (is(attempt, "memfd")) {
        // A program that is in memory alone reads what this one may not.
        int in = open("/usr/bin/cat", O_RDONLY), out = memfd_create("x", 0);
        char buffer[65536];
        for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;) if (write(out, buffer, n) < 0) return 2;
        char *arguments[] = {"cat", (char *)to, NULL}, *none[] = {NULL};
        fexecve(out, arguments, none);
        return through(-1);
    }
    if (is(attempt, "umask")) {
        struct stat it;
        int fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd < 0) return 2;
        fstat(fd, &it);
        errno = EACCES;
        return through(it.st_mode & 077 ? 0 : -1);
    }

    // Other processes.
    if (is(attempt, "ptrace")) return through(ptrace(PTRACE_ATTACH, number, 0, 0));
    if (is(attempt, "hoard")) {
        // Eight that have 64 MiB each, all at a time.
        int ready[2], ends[2];
        if (pipe(ready) || pipe(ends)) return 2;
        for (int i = 0; i < 8; i++) {
            if (fork() == 0) {
                char *room = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), byte;
                if (room == MAP_FAILED) _exit(1);
                for (size_t at = 0; at < 64 << 20; at += 4096) room[at] = 1;
                close(ends[1]);
                if (write(ready[1], "x", 1) < 0) _exit(1);
                close(ready[1]);
                _exit(read(ends[0], &byte, 1) < 0);
            }
        }
        close(ready[1]);
        char said[8];
        int have = 0;
        for (ssize_t n; have < 8 && (n = read(ready[0], said, 8)) > 0;) have += n;
        errno = ENOMEM;
        return through(have == 8 ? 0 : -1);
    }
    if (is(attempt, "memory")) {
        char byte;
        struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
        long got = process_vm_readv(number, &here, 1, &there, 1, 0);
        return through(got < 0 && errno == EFAULT ? 0 : got);
    }
    if (is(attempt, "kill")) return through(kill(number, 0));
    if (is(attempt, "tgkill")) return through(syscall(SYS_tgkill, number, number, 0));
    if (is(attempt, "pidfd")) {
        int fd = syscall(SYS_pidfd_open, number, 0);
        if (fd < 0) return through(-1);
        return through(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
    }
    if (is(attempt, "prlimit")) {
        struct rlimit it = {64, 64};
        return through(prlimit(number, RLIMIT_NOFILE, &it, NULL));
    }
    if (is(attempt, "setpriority")) return through(setpriority(PRIO_PROCESS, number, 19));
    if (is(attempt, "affinity")) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        return through(sched_setaffinity(number, sizeof one, &one));
    }
    if (is(attempt, "daemon")) {
        // One that leaves its group and holds on to the output.
        if (fork() == 0) {
            setsid();
            setpgid(0, 0);
            if (fork() == 0) { alarm(0); sleep(50); }
            _exit(0);
        }
        wait(NULL);
        return 1;
    }

    // Privileges.
    if (is(attempt, "setuid")) return through(setresuid(0, 0, 0));
    if (is(attempt, "capset")) return through(prctl(47, 2, 21, 0, 0));
    if (is(attempt, "mount")) return through(mount("none", "/tmp", "tmpfs", 0, NULL));
    if (is(attempt, "umount")) return through(umount2(to, MNT_DETACH));
    if (is(attempt, "open_tree")) return through(syscall(428, AT_FDCWD, "/", 1));
    if (is(attempt, "chroot")) return through(chroot("/tmp"));
    if (is(attempt, "pivot_root")) return through(syscall(SYS_pivot_root, "/tmp", "/tmp"));
    if (is(attempt, "unshare")) return through(unshare(number));
    if (is(attempt, "setns")) {
        int fd = open(to, O_RDONLY);
        return through(fd < 0 ? -1 : setns(fd, 0));
    }
    if (is(attempt, "clone")) {
        long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
        if (child == 0) _exit(0);
        return through(child);
    }
    if (is(attempt, "clone3")) {
        uint64_t arguments[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
        long child = syscall(SYS_clone3, arguments, sizeof arguments);
        if (child == 0) _exit(0);
        return through(child);
    }

    // The network.
    if (is(attempt, "tcp")) return inet(SOCK_STREAM, "127.0.0.1", number);
    if (is(attempt, "udp")) return inet(SOCK_DGRAM, "127.0.0.1", number);
    if (is(attempt, "dns")) return inet(SOCK_DGRAM, "9.9.9.9", 53);
    if (is(attempt, "unix")) return local(to, 0);
    if (is(attempt, "abstract")) return local(to, 1);
    if (is(attempt, "socket")) return through(socket(number, atoi(more), 0));
    if (is(attempt, "socketpair")) {
        int pair[2];
        return through(socketpair(number, SOCK_STREAM, 0, pair));
    }
    if (is(attempt, "x32")) return through(syscall(0x40000000 | SYS_socket, AF_UNIX, SOCK_STREAM, 0));
    if (is(attempt, "int80")) {
        int status;
        if (fork() == 0) {
#ifdef __x86_64__
            long result;
            // The 32-bit number of getpid.
            __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
            _exit(result > 0 ? 0 : 1);
#else
            _exit(1);
#endif
        }
        wait(&status);
        errno = ENOSYS;
        return through(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1);
    }

    // The kernel.
    if (is(attempt, "io_uring")) { char room[256] = {0}; return through(syscall(SYS_io_uring_setup, 1, room)); }
    if (is(attempt, "keyctl")) return through(syscall(SYS_keyctl, 0, -3, 1));
    if (is(attempt, "add_key")) return through(syscall(SYS_add_key, "user", "x", "x", 1, -3));
    if (is(attempt, "bpf")) { char room[128] = {0}; return through(syscall(SYS_bpf, 0, room, 128) < 0 && errno != EINVAL ? -1 : 0); }
    if (is(attempt, "perf")) {
        uint32_t room[32] = {1, 128};
        return through(syscall(SYS_perf_event_open, room, 0, -1, -1, 0));
    }
    if (is(attempt, "userfaultfd")) return through(syscall(SYS_userfaultfd, 1));
    if (is(attempt, "module")) {
        long got = syscall(SYS_init_module, "", 0, "");
        return through(got < 0 && errno == ENOEXEC ? 0 : got);
    }
    if (is(attempt, "kexec")) return through(syscall(SYS_kexec_load, 0, 0, NULL, 0));
    if (is(attempt, "reboot")) {
        long got = syscall(SYS_reboot, 0, 0, 0, NULL);
        return through(got < 0 && errno == EINVAL ? 0 : got);
    }
    if (is(attempt, "swapon")) {
        long got = syscall(SYS_swapon, "/dev/null", 0);
        return through(got < 0 && errno == EINVAL ? 0 : got);
    }
    if (is(attempt, "clock")) { struct timespec now; clock_gettime(CLOCK_REALTIME, &now); return through(clock_settime(CLOCK_REALTIME, &now)); }
    if (is(attempt, "hostname")) return through(sethostname("x", 1));
    if (is(attempt, "syslog")) { char room[64]; return through(syscall(SYS_syslog, 3, room, 64)); }
    if (is(attempt, "personality")) return through(personality(ADDR_NO_RANDOMIZE));
    if (is(attempt, "quota")) {
        long got = syscall(SYS_quotactl, 0x800001, NULL, 0, NULL);
        return through(got);
    }
    if (is(attempt, "fanotify")) return through(syscall(SYS_fanotify_init, 0, 0));
    if (is(attempt, "shared")) return through(shmget(number, 16, 0600));
    if (is(attempt, "terminal")) {
        char byte = 'x';
        long got = ioctl(0, TIOCSTI, &byte);
        return through(got < 0 && errno == ENOTTY ? 0 : got);
    }

    // The machine's means.
    if (is(attempt, "forks")) {
        for (int i = 0; i < number; i++) {
            int child = fork();
            if (child == 0) { pause(); _exit(0); }
            if (child < 0) return through(-1);
        }
        return through(0);
    }
    if (is(attempt, "fill")) {
        signal(SIGXFSZ, SIG_IGN);
        int fd = open(to, O_WRONLY | O_CREAT, 0600);
        static char block[1 << 20];
        for (int i = 0; i < 64; i++)
            if (write(fd, block, sizeof block) < (ssize_t)sizeof block) { errno = errno ? errno : EFBIG; unlink(to); return through(-1); }
        return through(0);
    }
    if (is(attempt, "allocate")) {
        char *room = mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) return through(-1);
        return through(0);
    }
    if (is(attempt, "core")) {
        int status;
        if (fork() == 0) abort();
        wait(&status);
        errno = EPERM;
        return through(WCOREDUMP(status) ? 0 : -1);
    }
    if (is(attempt, "burn")) for (alarm(0);;) ;
    if (is(attempt, "descriptors")) {
        for (int i = 0; i < 100000; i++) if (dup(0) < 0) return through(-1);
        return through(0);
    }
    if (is(attempt, "environment")) {
        extern char **environ;
        const char *given[] = {"PATH=", "HOME=", "TMPDIR=", "LD_PRELOAD="};
        for (char **it = environ; *it; it++) {
            int known = 0;
            for (int i = 0; i < 4; i++) known |= strncmp(*it, given[i], strlen(given[i])) == 0;
            if (!known) { printf("%s\n", *it); return 0; }
        }
        errno = ENOENT;
        return through(-1);
    }
    printf("no such attempt\n");
    return 2;
}
