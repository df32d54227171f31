/* The catalog: names, classes, fields and formats of what a target records. It lies in the ELF
 * section
 * ".hangscope.catalog", which is not loaded, so it costs the target nothing. C11 and C++20.
 *
 * What it says of places in the code may lie in ".hangscope.places" in its stead: an object file
 * ties each piece of that section to the code that it is about (SHF_LINK_ORDER), so that a linker
 * which collects unused sections keeps the one with the other.
 *
 * Both sections are a row of lists, each 4-byte aligned, in the byte order of the ELF. Two object
 * files may bring the same list; a reader takes it once.
 *
 *   list:    magic (4)  version (4)  bytes (4), of the whole list
 *   entry:   kind (4)  id (4)  classes (4)  name  format  fields    three strings, each ends with a
 *            zero byte; padding to 4 bytes
 *
 * `format` is text with one printf conversion for each field: %u %d %x %p %c %s (a field of type
 * char4), %% for a percent sign. `fields` is "type name,type name,". The types and how many
 * parameters each takes: u8 i8 u16 i16 u32 i32 bool char4 1, u64 i64 2, ptr word_bytes / 4; wider
 * ones low half first. Any other type is an enumeration's, which takes 1: the entries of that kind
 * with its name say what the values are called. */
#ifndef HANGSCOPE_ABI_CATALOG_H
#define HANGSCOPE_ABI_CATALOG_H

#define HANGSCOPE_CATALOG_SECTION ".hangscope.catalog"
#define HANGSCOPE_PLACES_SECTION ".hangscope.places"
#define HANGSCOPE_CATALOG_MAGIC 0x6c746163 /* as bytes, little-endian: "catl" */
#define HANGSCOPE_CATALOG_VERSION 1

#define HANGSCOPE_CATALOG_EVENT 1

/* Entries of other kinds use the same places for other things; a reader skips kinds it does not
 * know.
 *
 *              id                      classes     name             format          fields
 *   waypoint   address of the code     0           its characters   long name       file:line
 *   assert     address of the code     fault type               -   message         file:line
 *   resource   number                  resource kind, or 0  name                -               -
 *   node resource  number, low 16 bits    the same    name                -               -
 *   role       number                  0           name                -               -
 *   kernel     number                  0           name             path                -
 *   guard      number                  0           name                -               -
 *   task       id                      0           name                -               -
 *   interrupt  number                  0           name                -               -
 *   exception  cause                   0           name                -               -
 *   task state number                  0           name                -               -
 *   enumeration  value                 0           the value's name    its type        -
 *   word       address of the first    bytes from one to the next  name  -  "type per when"
 *
 * An address is the ELF's, its low 32 bits. A resource whose high 16 bits are a node's number + 1
 * is that node's: its low 16 bits find the name. */
#define HANGSCOPE_CATALOG_WAYPOINT 2
#define HANGSCOPE_CATALOG_ASSERT 3
#define HANGSCOPE_CATALOG_RESOURCE 4
#define HANGSCOPE_CATALOG_NODE_RESOURCE 5
#define HANGSCOPE_CATALOG_ROLE 6
#define HANGSCOPE_CATALOG_KERNEL 7
#define HANGSCOPE_CATALOG_GUARD 8
#define HANGSCOPE_CATALOG_TASK 9
#define HANGSCOPE_CATALOG_INTERRUPT 10
#define HANGSCOPE_CATALOG_EXCEPTION 11
#define HANGSCOPE_CATALOG_TASK_STATE 12
#define HANGSCOPE_CATALOG_ENUMERATION 13
#define HANGSCOPE_CATALOG_WORD 14

#endif
