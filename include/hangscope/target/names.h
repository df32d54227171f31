/* Names that are known only when the program runs: of the tasks that it makes, its queues, its
 * locks. What is known when it is built costs nothing in the catalog (HANGSCOPE_NAMED).
 *
 *   hangscope_task_is_named(task->id, task->name);
 *   hangscope_resource_is_named(queue, "rx");
 *
 * The first 23 characters are kept. A name that is given again replaces the former one. A task that
 * is gone keeps its name, for its events, until the place is wanted; a name that finds no place is
 * counted.
 *
 * One context at a time: where a kernel makes and ends its tasks, it has that. */
#ifndef HANGSCOPE_TARGET_NAMES_H
#define HANGSCOPE_TARGET_NAMES_H

#include "hangscope/abi/catalog.h"
#include "hangscope/target/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_NAME_SLOTS > 0

/* `kind`: HANGSCOPE_CATALOG_TASK, _RESOURCE, _KERNEL, ...; `id`: what the catalog's entry would
 * have. `text` null: what has the name is gone. */
void hangscope_is_named(uint32_t kind, uint32_t id, const char* text);

#define hangscope_task_is_named(task, text) \
  hangscope_is_named(HANGSCOPE_CATALOG_TASK, (uint32_t)(task), text)
#define hangscope_resource_is_named(resource, text) \
  hangscope_is_named(HANGSCOPE_CATALOG_RESOURCE, (uint32_t)(uintptr_t)(resource), text)

#ifdef HANGSCOPE_DEFINE

/* The place of that name; else a free one, else the first whose owner is gone; null: there is none.
 */
HANGSCOPE_INLINE struct hangscope_name* hangscope_name_place(struct hangscope_name* names,
                                                             uint32_t kind, uint32_t id) {
  struct hangscope_name* empty = 0;
  struct hangscope_name* retired = 0;
  for (uint32_t i = HANGSCOPE_NAME_SLOTS; i-- > 0;) {
    const uint32_t used = hangscope_port_load(&names[i].kind);
    if ((used & ~HANGSCOPE_NAME_RETIRED) == kind && names[i].id == id) return &names[i];
    if (used == 0) empty = &names[i];
    if ((used & HANGSCOPE_NAME_RETIRED) != 0) retired = &names[i];
  }
  return empty != 0 ? empty : retired;
}

HANGSCOPE_COLD void hangscope_is_named(uint32_t kind, uint32_t id, const char* text) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  if (scope == 0) return;
  struct hangscope_name* const name = hangscope_name_place(scope->names, kind, id);
  uint32_t* const changes = &scope->header.name_changes;
  if (text == 0) {
    if (name != 0 && name->id == id && hangscope_port_load(&name->kind) == kind)
      hangscope_port_store(&name->kind, kind | HANGSCOPE_NAME_RETIRED);
    return;
  }
  if (name == 0) {
    hangscope_port_store(&scope->header.lost_names,
                         hangscope_port_load(&scope->header.lost_names) + 1);
    return;
  }
  /* Odd while it changes. Pairs with the reader's look at the number before and after. */
  hangscope_port_store(changes, hangscope_port_load(changes) + 1);
  hangscope_port_stores_in_order();
  hangscope_port_store(&name->id, id);
  uint32_t length = 0;
  while (length < sizeof name->text - 1 && text[length] != 0) {
    ((volatile char*)name->text)[length] = text[length];
    length++;
  }
  while (length < sizeof name->text) ((volatile char*)name->text)[length++] = 0;
  hangscope_port_store(&name->kind, kind);
  hangscope_port_publish(changes, hangscope_port_load(changes) + 1);
}

#endif

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_is_named(uint32_t kind, uint32_t id, const char* text) {
  (void)kind, (void)id, (void)text;
}
HANGSCOPE_OFF_END
#define hangscope_is_named(...) HANGSCOPE_NOT_DONE((hangscope_is_named)(__VA_ARGS__))
#define hangscope_task_is_named(task, text) \
  hangscope_is_named(HANGSCOPE_CATALOG_TASK, (uint32_t)(task), text)
#define hangscope_resource_is_named(resource, text) \
  hangscope_is_named(HANGSCOPE_CATALOG_RESOURCE, (uint32_t)(uintptr_t)(resource), text)

#endif

#ifdef __cplusplus
}
#endif

#endif
