// The memory of the texts that a call makes. Each thread has blocks of its own, as it has an error text: they
// are used again by the thread's next call, and freed when the thread ends or the library is unloaded.
#include "codegen/runtime/artifact/texts.h"

#include <pthread.h>
#include <stdlib.h>

enum { kSmallestBlock = 4096 };

// Its texts follow it.
struct Block {
  struct Block* previous;
  int64_t bytes, used;
};

struct ThreadTexts {
  struct ThreadTexts *next, **link;  // in the list of all threads
  struct Block* last;
  const char* problem;
};

static _Thread_local struct ThreadTexts* own_texts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ThreadTexts* all_texts;
static pthread_key_t key;  // its destructor runs when a thread ends
static enum { kNoKey, kHasKey, kUnloaded } key_state;

static void FreeBlocks(struct Block* block) {
  while (block != NULL) {
    struct Block* previous = block->previous;
    free(block);
    block = previous;
  }
}

// REQUIRES: the lock.
static void FreeTexts(struct ThreadTexts* texts) {
  *texts->link = texts->next;
  if (texts->next != NULL) texts->next->link = texts->link;
  FreeBlocks(texts->last);
  free(texts);
}

static void EndThread(void* texts) {
  pthread_mutex_lock(&lock);
  FreeTexts(texts);
  pthread_mutex_unlock(&lock);
  own_texts = NULL;
}

__attribute__((destructor)) static void FreeAllTexts(void) {
  pthread_mutex_lock(&lock);
  if (key_state == kHasKey) pthread_key_delete(key);
  key_state = kUnloaded;
  while (all_texts != NULL) FreeTexts(all_texts);
  own_texts = NULL;
  pthread_mutex_unlock(&lock);
}

// Without a key, which a process has few of, the texts live until the library is unloaded.
static struct ThreadTexts* OwnTexts(void) {
  if (own_texts != NULL) return own_texts;
  struct ThreadTexts* texts = calloc(1, sizeof *texts);
  if (texts == NULL) return NULL;
  pthread_mutex_lock(&lock);
  if (key_state == kNoKey && pthread_key_create(&key, EndThread) == 0) key_state = kHasKey;
  texts->next = all_texts;
  texts->link = &all_texts;
  if (all_texts != NULL) all_texts->link = &texts->next;
  all_texts = texts;
  if (key_state == kHasKey) pthread_setspecific(key, texts);
  pthread_mutex_unlock(&lock);
  return own_texts = texts;
}

char* MyccNewText(int64_t bytes) {
  struct ThreadTexts* texts = OwnTexts();
  if (texts == NULL) return NULL;
  struct Block* block = texts->last;
  if (block == NULL || block->bytes - block->used < bytes) {
    const int64_t twice = block == NULL ? kSmallestBlock : 2 * block->bytes;
    const int64_t capacity = twice > bytes ? twice : bytes;
    struct Block* larger = malloc(sizeof *larger + (size_t)capacity);
    if (larger == NULL) {
      texts->problem = "no memory for its texts";
      return NULL;
    }
    *larger = (struct Block){block, capacity, 0};
    texts->last = block = larger;
  }
  char* text = (char*)(block + 1) + block->used;
  block->used += bytes;
  return text;
}

// The last block is the largest, and stays.
void MyccForgetTexts(void) {
  struct ThreadTexts* texts = own_texts;
  if (texts == NULL) return;
  texts->problem = NULL;
  if (texts->last == NULL) return;
  FreeBlocks(texts->last->previous);
  texts->last->previous = NULL;
  texts->last->used = 0;
}

void MyccSetProblem(const char* problem) {
  struct ThreadTexts* texts = OwnTexts();
  if (texts != NULL && texts->problem == NULL) texts->problem = problem;
}

const char* MyccTakeProblem(void) {
  if (own_texts == NULL) return NULL;
  const char* problem = own_texts->problem;
  own_texts->problem = NULL;
  return problem;
}

int MyccReadCharacter(const char* text, uint32_t* character) {
  const uint8_t* bytes = (const uint8_t*)text;
  static const uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  *character = bytes[0];
  if (bytes[0] < 0x80) return 1;
  const int count = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
  uint32_t read = bytes[0] & (0x7f >> count);
  int is_sound = bytes[0] >= 0xc0 && bytes[0] < 0xf8;
  for (int i = 1; i < count && is_sound; ++i) {
    is_sound = (bytes[i] & 0xc0) == 0x80;  // a NUL is not
    read = read << 6 | (bytes[i] & 0x3f);
  }
  if (!is_sound || read < kLeast[count] || read > 0x10ffff) {
    *character = kMyccNotUtf8 + bytes[0];
    return 1;
  }
  *character = read;
  return count;
}

char* MyccWriteCharacter(char* to, uint32_t character) {
  if (character < 0x80 || character >= kMyccNotUtf8) {
    *to++ = (char)(character & 0xff);
    return to;
  }
  const int count = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  for (int i = count - 1; i > 0; --i) {
    to[i] = (char)(0x80 | (character & 0x3f));
    character >>= 6;
  }
  to[0] = (char)(0xff << (8 - count) | character);
  return to + count;
}
