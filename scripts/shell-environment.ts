/**
 * Text of a file for `source`: variables with which curl and the official SDKs call the local system.
 *
 * @param baseUrl of the gateway, without a path
 * @param key of a caller
 * @param agentId of an agent that the caller may run; none if there is no agent
 */
export function shellEnvironment(baseUrl: string, key: string, agentId?: string): string {
  const variables = {
    HEADGATE_URL: baseUrl,
    HEADGATE_KEY: key,
    ...(agentId !== undefined && { HEADGATE_AGENT: agentId }),
    OPENAI_BASE_URL: `${baseUrl}/v1`,
    OPENAI_API_KEY: key,
    ANTHROPIC_BASE_URL: baseUrl,
    ANTHROPIC_API_KEY: key,
  }
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quoted(value)}\n`)
    .join('')
}

/** In single quotes a shell reads every character as it is, except the quote itself. */
const quoted = (value: string): string => `'${value.replaceAll("'", `'\\''`)}'`

/**
 * Removes what a shell that read the file has set for the SDKs: a system that starts in it would take itself for the provider.
 */
export function dropShellEnvironment(environment: NodeJS.ProcessEnv): void {
  for (const provider of ['OPENAI', 'ANTHROPIC']) {
    const key = environment[`${provider}_API_KEY`]
    if (key === undefined || key !== environment.HEADGATE_KEY) continue
    delete environment[`${provider}_API_KEY`]
    delete environment[`${provider}_BASE_URL`]
  }
}
