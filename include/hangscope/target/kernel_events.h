/* The events of an operating system's kernel, ready-made: hangscope_task_create(id, priority) and
 * so on. docs/porting.md shows where a kernel calls them. abi/kernel_events.h lists them.
 *
 * yield is the API call only; a switch that the scheduler makes by itself is a switch. */
#ifndef HANGSCOPE_TARGET_KERNEL_EVENTS_H
#define HANGSCOPE_TARGET_KERNEL_EVENTS_H

#include "hangscope/abi/kernel_events.h"
#include "hangscope/target/events.h"

HANGSCOPE_EVENTS(own, HANGSCOPE_FIRST_OWN_ID, HANGSCOPE_OWN_EVENTS);
HANGSCOPE_EVENTS(kernel, HANGSCOPE_FIRST_KERNEL_ID, HANGSCOPE_KERNEL_EVENTS);

#if !HANGSCOPE_ENABLE
#define hangscope_task_create(...) HANGSCOPE_NOT_DONE((hangscope_task_create)(__VA_ARGS__))
#define hangscope_task_create_raw(...) HANGSCOPE_NOT_DONE((hangscope_task_create_raw)(__VA_ARGS__))
#define hangscope_task_destroy(...) HANGSCOPE_NOT_DONE((hangscope_task_destroy)(__VA_ARGS__))
#define hangscope_task_destroy_raw(...) \
  HANGSCOPE_NOT_DONE((hangscope_task_destroy_raw)(__VA_ARGS__))
#define hangscope_task_switch(...) HANGSCOPE_NOT_DONE((hangscope_task_switch)(__VA_ARGS__))
#define hangscope_task_switch_raw(...) HANGSCOPE_NOT_DONE((hangscope_task_switch_raw)(__VA_ARGS__))
#define hangscope_task_suspend(...) HANGSCOPE_NOT_DONE((hangscope_task_suspend)(__VA_ARGS__))
#define hangscope_task_suspend_raw(...) \
  HANGSCOPE_NOT_DONE((hangscope_task_suspend_raw)(__VA_ARGS__))
#define hangscope_task_resume(...) HANGSCOPE_NOT_DONE((hangscope_task_resume)(__VA_ARGS__))
#define hangscope_task_resume_raw(...) HANGSCOPE_NOT_DONE((hangscope_task_resume_raw)(__VA_ARGS__))
#define hangscope_task_delay(...) HANGSCOPE_NOT_DONE((hangscope_task_delay)(__VA_ARGS__))
#define hangscope_task_delay_raw(...) HANGSCOPE_NOT_DONE((hangscope_task_delay_raw)(__VA_ARGS__))
#define hangscope_task_yield(...) HANGSCOPE_NOT_DONE((hangscope_task_yield)(__VA_ARGS__))
#define hangscope_task_yield_raw(...) HANGSCOPE_NOT_DONE((hangscope_task_yield_raw)(__VA_ARGS__))
#define hangscope_semaphore_wait(...) HANGSCOPE_NOT_DONE((hangscope_semaphore_wait)(__VA_ARGS__))
#define hangscope_semaphore_wait_raw(...) \
  HANGSCOPE_NOT_DONE((hangscope_semaphore_wait_raw)(__VA_ARGS__))
#define hangscope_semaphore_post(...) HANGSCOPE_NOT_DONE((hangscope_semaphore_post)(__VA_ARGS__))
#define hangscope_semaphore_post_raw(...) \
  HANGSCOPE_NOT_DONE((hangscope_semaphore_post_raw)(__VA_ARGS__))
#define hangscope_mutex_lock(...) HANGSCOPE_NOT_DONE((hangscope_mutex_lock)(__VA_ARGS__))
#define hangscope_mutex_lock_raw(...) HANGSCOPE_NOT_DONE((hangscope_mutex_lock_raw)(__VA_ARGS__))
#define hangscope_mutex_unlock(...) HANGSCOPE_NOT_DONE((hangscope_mutex_unlock)(__VA_ARGS__))
#define hangscope_mutex_unlock_raw(...) \
  HANGSCOPE_NOT_DONE((hangscope_mutex_unlock_raw)(__VA_ARGS__))
#define hangscope_pipe_read(...) HANGSCOPE_NOT_DONE((hangscope_pipe_read)(__VA_ARGS__))
#define hangscope_pipe_read_raw(...) HANGSCOPE_NOT_DONE((hangscope_pipe_read_raw)(__VA_ARGS__))
#define hangscope_pipe_write(...) HANGSCOPE_NOT_DONE((hangscope_pipe_write)(__VA_ARGS__))
#define hangscope_pipe_write_raw(...) HANGSCOPE_NOT_DONE((hangscope_pipe_write_raw)(__VA_ARGS__))
#define hangscope_queue_send(...) HANGSCOPE_NOT_DONE((hangscope_queue_send)(__VA_ARGS__))
#define hangscope_queue_send_raw(...) HANGSCOPE_NOT_DONE((hangscope_queue_send_raw)(__VA_ARGS__))
#define hangscope_queue_receive(...) HANGSCOPE_NOT_DONE((hangscope_queue_receive)(__VA_ARGS__))
#define hangscope_queue_receive_raw(...) \
  HANGSCOPE_NOT_DONE((hangscope_queue_receive_raw)(__VA_ARGS__))
#define hangscope_isr_enter(...) HANGSCOPE_NOT_DONE((hangscope_isr_enter)(__VA_ARGS__))
#define hangscope_isr_enter_raw(...) HANGSCOPE_NOT_DONE((hangscope_isr_enter_raw)(__VA_ARGS__))
#define hangscope_isr_exit(...) HANGSCOPE_NOT_DONE((hangscope_isr_exit)(__VA_ARGS__))
#define hangscope_isr_exit_raw(...) HANGSCOPE_NOT_DONE((hangscope_isr_exit_raw)(__VA_ARGS__))
#define hangscope_exception(...) HANGSCOPE_NOT_DONE((hangscope_exception)(__VA_ARGS__))
#define hangscope_exception_raw(...) HANGSCOPE_NOT_DONE((hangscope_exception_raw)(__VA_ARGS__))
#endif

#endif
