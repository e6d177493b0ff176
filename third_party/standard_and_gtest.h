// standard.h and the headers of tests, compiled once for all tests.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "third_party/standard.h"
