// The tests under GoogleTest.
#include "parts.h"
#include <gtest/gtest.h>

#define HOLDS(condition) EXPECT_TRUE(condition)
#define CASE(name) TEST(Parts, name)

#include "cases.inc"
