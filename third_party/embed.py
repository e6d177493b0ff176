"""Writes a function that hands out files: embed.py HEADER FUNCTION FOLDER [FILE...]; names begin below the folder."""
import sys

header, function, folder, *files = sys.argv[1:]
print(f'#include "{header}"\n\nnamespace rankine::tools {{\n')
print(f"std::vector<EmbeddedFile> {function}() {{\n  std::vector<EmbeddedFile> files;")
for path in files:
    print(f'  files.push_back({{"{path[path.index(folder) + len(folder):]}", {{}}}});')
    with open(path, "rb") as file:
        # Each byte that is not plain in a string is three octal digits.
        while piece := file.read(1 << 12):
            plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in piece)
            print(f'  files.back().text.append("{plain}", {len(piece)});')
print("  return files;\n}\n\n}  // namespace rankine::tools")
