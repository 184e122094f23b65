/* A Vulkan driver that passes everything on to another one (DRIVER), except that it opens no device while the file named by
 * PLIMSOLL_TEST_REFUSE is there. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VK_ERROR_INITIALIZATION_FAILED (-3)

typedef void (*function)(void);
typedef function (*lookup)(void *instance, const char *name);
typedef int (*create_device)(void *card, const void *how, const void *allocator, void **device);
typedef int (*negotiate)(uint32_t *version);

static void *of_driver(const char *name) {
    static void *driver;
    if (!driver) driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

static create_device real_create_device;

static int refusing_create_device(void *card, const void *how, const void *allocator, void **device) {
    const char *refuse = getenv("PLIMSOLL_TEST_REFUSE");
    if (refuse && access(refuse, F_OK) == 0) return VK_ERROR_INITIALIZATION_FAILED;
    return real_create_device(card, how, allocator, device);
}

function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    lookup look = (lookup)of_driver("vk_icdGetInstanceProcAddr");
    function found = look ? look(instance, name) : NULL;
    if (!found || strcmp(name, "vkCreateDevice") != 0) return found;
    real_create_device = (create_device)found;
    return (function)refusing_create_device;
}

function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
    lookup look = (lookup)of_driver("vk_icdGetPhysicalDeviceProcAddr");
    return look ? look(instance, name) : NULL;
}

int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    negotiate agree = (negotiate)of_driver("vk_icdNegotiateLoaderICDInterfaceVersion");
    return agree ? agree(version) : VK_ERROR_INITIALIZATION_FAILED;
}
