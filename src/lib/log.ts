/**
 * Values that must not reach a log, also inside a third party's error text. A key does not follow a letter
 * (`task-force` contains none). Exceptions are the end of an escape (`%2F`, `\n`) and a complete key of the gateway.
 */
const SECRET_SHAPES =
  /(?:(?<!(?<!%[0-9a-f]|\\)[a-z])|(?=hg[sl]?_[0-9a-z]{12}_[0-9a-z]{20}))(Bearer\s+|hg[sl]?_|gsk_|sk-|sk_|v1\.|xai-(?=[\w-]{20})|AIza(?=[\w-]{30}))[A-Za-z0-9_.~+/=-]{8,}/gi
/** The suffix that drizzle appends to the text of a failed query. */
const PARAMETERS = /\nparams: [\s\S]*$/
/** An ASCII character in percent encoding. */
const ENCODED = /^%[2-7][0-9a-f]$/i

/**
 * Writes one JSON line. Values in the shape of a credential are redacted, because error texts of clients and databases
 * can quote what they were sent.
 */
export function logEvent(
  level: 'info' | 'warn' | 'error',
  event: string,
  fields: Record<string, string | number | boolean | null> = {},
): void {
  const line = JSON.stringify({ level, event, ...fields }, (_key, value) =>
    typeof value === 'string' ? redact(value) : value,
  )
  if (level === 'error') console.error(line)
  else console.log(line)
}

/** Replaces everything in the shape of a key or credential. */
export function redact(text: string): string {
  return text.replace(SECRET_SHAPES, '$1[redacted]')
}

/** Replaces keys and credentials in paths and addresses, in which they may be percent-encoded any number of times. */
export function redactEncoded(text: string): string {
  const decoded = fullyDecoded(text)
  const redacted = redact(decoded)
  return redacted === decoded ? text : redacted
}

/**
 * Decodes ASCII until nothing encoded is left. One pass is enough, and takes linear time: a decoded character can only
 * complete a code whose other characters precede it.
 */
function fullyDecoded(text: string): string {
  if (!text.includes('%')) return text
  const decoded: string[] = []
  for (let at = 0; at < text.length; at += 1) {
    decoded.push(text.charAt(at))
    while (decoded.at(-3) === '%') {
      const code = decoded.slice(-3).join('')
      if (!ENCODED.test(code)) break
      decoded.length -= 3
      decoded.push(String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    }
  }
  return decoded.join('')
}

/**
 * The text of a caught value, without its stack, redacted. Only the innermost cause is used: drizzle's errors quote the
 * parameters of the failed query, which contain personal data and digests of keys.
 */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return redact(String(error))
  if (error.cause instanceof Error) return errorText(error.cause)
  return redact(`${error.name}: ${error.message.replace(PARAMETERS, '')}`)
}

/** Frames of a stack that are logged, and the length that all of them may have. */
const MOST_FRAMES = 20
const LONGEST_STACK = 4_000

/** The known place of a failure; null for an unknown part. */
interface FailurePlace {
  request_id: string | null
  surface: string
  /** Pattern of the route, method of the object or name of the job: never a path, which contains what callers send. */
  route: string | null
}

/**
 * Logs an internal error as one line that explains it: name, message and stack are those of the innermost cause, without
 * parameters of a query. `answer` is the text for the caller, if another error was thrown for it.
 */
export function logFailure(event: string, place: FailurePlace, error: unknown): void {
  const cause = innermost(error)
  const isWrapped = error instanceof Error && cause !== error && !PARAMETERS.test(error.message)
  logEvent('error', event, {
    ...place,
    name: cause instanceof Error ? cause.name : typeof cause,
    error: errorText(cause),
    ...(isWrapped && { answer: error.message }),
    stack: cause instanceof Error ? framesOf(cause) : null,
  })
}

const innermost = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : error

/** The part of a stack after its message. Lines of the message may look like frames: it can quote what callers send. */
function framesOf({ message, stack = '' }: Error): string | null {
  const start = stack.indexOf(message)
  if (start < 0) return null
  const lines = stack.slice(start + message.length).split('\n')
  const frames = lines.filter((line) => /^\s+at /.test(line))
  return frames.length === 0 ? null : frames.slice(0, MOST_FRAMES).join('\n').slice(0, LONGEST_STACK)
}
