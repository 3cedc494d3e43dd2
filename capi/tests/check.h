/* Ends the program where something does not hold, and says where. */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

#define CHECK(what)                                                                          \
  do {                                                                                       \
    if (!(what)) {                                                                           \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, bowstring_last_error());        \
      return 1;                                                                              \
    }                                                                                        \
  } while (0)

#endif
