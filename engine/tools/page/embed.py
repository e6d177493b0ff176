"""Writes built_page.cc: the page as text that the tool hands out. Arguments: the page, if there is one."""
import sys

print('#include "engine/tools/page/built_page.h"\n\nnamespace rankine::tools {\n\nstd::string built_page() {')
print("  std::string page;")
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        # Each byte that is not plain in a string is three octal digits.
        while piece := file.read(1 << 12):
            plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in piece)
            print(f'  page.append("{plain}", {len(piece)});')
print("  return page;\n}\n\n}  // namespace rankine::tools")
