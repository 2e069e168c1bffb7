/**
 * Calls a Durable Object; if that fails on its way, once more on a fresh stub, since a stub whose object went away stays
 * broken.
 * @param use makes the call. @param mayRepeat whether to repeat it after a failure.
 * @param options where an object that does not exist yet is created. @throws what the last call threw.
 */
export async function withFreshStub<Target, Result>(
  namespace: DurableObjectNamespace,
  name: string,
  use: (target: Target) => Promise<Result>,
  mayRepeat: () => boolean,
  options?: DurableObjectNamespaceGetDurableObjectOptions,
): Promise<Result> {
  const attempt = async () => use(namespace.getByName(name, options) as unknown as Target)
  try {
    return await attempt()
  } catch (error) {
    if (isFinal(error) || !mayRepeat()) throw error
    return attempt()
  }
}

/**
 * Whether repeating the call cannot help: the object is overloaded, which repeating makes worse, or its own code threw.
 * https://developers.cloudflare.com/durable-objects/best-practices/error-handling/
 */
export function isFinal(error: unknown): boolean {
  const { overloaded, remote, retryable } = error as Record<string, boolean | undefined>
  return overloaded === true || (remote === true && retryable !== true)
}
