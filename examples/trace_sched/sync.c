/* What tasks wait for each other with. Each function records what it does where it does it, under the
 * lock that it holds anyway. */
#include "internal.h"

void semaphore_wait(struct semaphore* semaphore) {
  const uintptr_t before = kernel_lock();
  semaphore->count--;
  hangscope_semaphore_wait(kernel_name(semaphore), semaphore->count);
  if (semaphore->count < 0) kernel_block(semaphore, HANGSCOPE_RESOURCE_CHANNEL, HANGSCOPE_NO_TASK);
  kernel_unlock(before);
}

void semaphore_post(struct semaphore* semaphore) {
  const uintptr_t before = kernel_lock();
  semaphore->count++;
  hangscope_semaphore_post(kernel_name(semaphore), semaphore->count);
  (void)kernel_wake(semaphore);
  kernel_preempt();
  kernel_unlock(before);
}

void mutex_lock(struct mutex* mutex) {
  const uintptr_t before = kernel_lock();
  if (mutex->owner == KERNEL_NO_TASK) {
    mutex->owner = task_self();
    hangscope_mutex_lock(kernel_name(mutex), mutex->owner);
  } else {
    hangscope_mutex_lock(kernel_name(mutex), mutex->owner);
    kernel_block(mutex, HANGSCOPE_RESOURCE_EXCLUSIVE, mutex->owner); /* comes back as the owner */
  }
  kernel_unlock(before);
}

int mutex_unlock(struct mutex* mutex) {
  const uintptr_t before = kernel_lock();
  const int mine = mutex->owner == task_self();
  if (mine) {
    hangscope_mutex_unlock(kernel_name(mutex));
    mutex->owner = kernel_wake(mutex);
    if (mutex->owner != KERNEL_NO_TASK) {
      hangscope_holder_is(kernel_name(mutex), mutex->owner);
      kernel_preempt();
    }
  }
  kernel_unlock(before);
  return mine ? 0 : -1;
}

/* Senders wait for `sent`, receivers for the queue itself: a wake must reach the other side. */
void queue_send(struct queue* queue, uint32_t message) {
  const uintptr_t before = kernel_lock();
  while (queue->sent - queue->received == QUEUE_LENGTH) {
    kernel_block(&queue->sent, HANGSCOPE_RESOURCE_CHANNEL, HANGSCOPE_NO_TASK);
  }
  queue->messages[queue->sent++ % QUEUE_LENGTH] = message;
  hangscope_queue_send(kernel_name(queue), queue->sent - queue->received);
  (void)kernel_wake(queue);
  kernel_preempt();
  kernel_unlock(before);
}

uint32_t queue_receive(struct queue* queue) {
  const uintptr_t before = kernel_lock();
  while (queue->sent == queue->received) {
    kernel_block(queue, HANGSCOPE_RESOURCE_CHANNEL, HANGSCOPE_NO_TASK);
  }
  const uint32_t message = queue->messages[queue->received++ % QUEUE_LENGTH];
  hangscope_queue_receive(kernel_name(queue), queue->sent - queue->received);
  (void)kernel_wake(&queue->sent);
  kernel_preempt();
  kernel_unlock(before);
  return message;
}

void pipe_write(struct pipe* pipe, const void* data, uint32_t count) {
  const uint8_t* bytes = data;
  const uintptr_t before = kernel_lock();
  while (count > 0) {
    uint32_t portion = 0;
    while (portion < count && pipe->written - pipe->read < PIPE_BYTES) {
      pipe->bytes[pipe->written++ % PIPE_BYTES] = bytes[portion++];
    }
    if (portion == 0) {
      kernel_block(&pipe->written, HANGSCOPE_RESOURCE_CHANNEL, HANGSCOPE_NO_TASK);
      continue;
    }
    hangscope_pipe_write(kernel_name(pipe), portion);
    bytes += portion;
    count -= portion;
    (void)kernel_wake(pipe);
    kernel_preempt();
  }
  kernel_unlock(before);
}

uint32_t pipe_read(struct pipe* pipe, void* data, uint32_t count) {
  uint8_t* bytes = data;
  const uintptr_t before = kernel_lock();
  while (count > 0 && pipe->written == pipe->read) {
    kernel_block(pipe, HANGSCOPE_RESOURCE_CHANNEL, HANGSCOPE_NO_TASK);
  }
  uint32_t portion = 0;
  while (portion < count && pipe->read != pipe->written) bytes[portion++] = pipe->bytes[pipe->read++ % PIPE_BYTES];
  hangscope_pipe_read(kernel_name(pipe), portion);
  (void)kernel_wake(&pipe->written);
  kernel_preempt();
  kernel_unlock(before);
  return portion;
}
