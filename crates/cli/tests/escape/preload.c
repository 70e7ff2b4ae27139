// Loaded into whatever is started with it: it must be the program alone, never the launcher, which
// is still free.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void loaded(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    char *name = strrchr(path, '/');
    if (strcmp(name, "/attacker") == 0) return;
    strcpy(name, "/outside/open/preloaded");
    close(open(path, O_CREAT | O_WRONLY, 0666));
}
