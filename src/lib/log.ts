/** Values that must not reach a log even inside a third party's error text. */
const SECRET_SHAPES = /(Bearer\s+|hg_|sk-|sk_|v1\.)[A-Za-z0-9_.~+/=-]{8,}/gi

/**
 * Writes one JSON line. Only fields named by the caller are written, and anything shaped like a credential is cut
 * out of them, because error texts of clients and databases sometimes quote what they were sent.
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

/** Cuts out whatever looks like a key or credential. */
export function redact(text: string): string {
  return text.replace(SECRET_SHAPES, '$1[redacted]')
}

/** The text of a caught value, without its stack, redacted. */
export function errorText(error: unknown): string {
  return redact(error instanceof Error ? `${error.name}: ${error.message}` : String(error))
}
