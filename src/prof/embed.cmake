# Writes OUT, a C file with the bytes of IN as NAME: cmake -DIN=report.html -DNAME=x -DOUT=x.c -P embed.cmake
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "extern const unsigned char ${NAME}[];\nextern const int ${NAME}_n;\nconst unsigned char ${NAME}[] = {${bytes}0};\nconst int ${NAME}_n = (int)sizeof ${NAME} - 1;\n")
