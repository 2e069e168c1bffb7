/** Limits of one workspace. */
export const WORKSPACE_LIMITS = {
  bytes: 64 * 1024 * 1024,
  /** Files, folders and links together. */
  entries: 2_000,
  /** A command has a file in memory several times, and an isolate has 128 MB. */
  fileBytes: 16 * 1024 * 1024,
  depth: 32,
  nameBytes: 255,
  pathBytes: 1_024,
} as const

/** Limits of one call of the shell. */
export const SHELL_LIMITS = {
  commands: 20,
  /** Characters of all commands of a call. */
  sourceLength: 1024 * 1024,
  commandMs: 30_000,
  callMs: 120_000,
  /** UTF-8 bytes of stdout, and of stderr, of a command. */
  outputBytes: 256 * 1024,
} as const

/** Calls that may wait for the running one of the same workspace. */
export const MOST_WAITING_CALLS = 8
/** Time for which the result of a call is stored for a repetition of its request, in milliseconds. */
export const RESULT_MEMORY_MS = 10 * 60_000
/** A workspace that is unused for this time deletes itself. In milliseconds. */
export const WORKSPACE_LIFETIME_MS = 30 * 24 * 3_600_000
