/* A driver that shows what the environment says: FAKE_CUDA=12040, FAKE_CAPABILITY=75, FAKE_GPUS=1. */
#include <stdlib.h>
#include <string.h>

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = number("FAKE_CUDA", 13000); return 0; }
int cuDeviceGetCount(int *count) { *count = number("FAKE_GPUS", 1); return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "Fake T4", size); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = number("FAKE_CAPABILITY", 75);
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 0;
  return 0;
}
