/** The local system in the variables of a shell. */
export interface ShellSystem {
  /** Of the gateway, without a path. */
  baseUrl: string
  /** Key of a caller. */
  key: string
  /** For `npm run admin`, which takes no local token once HEADGATE_URL is set. */
  adminToken: string
  /** Id of an agent that the caller may run; undefined if there is no agent. */
  agentId: string | undefined
}

/** Text of a file for `source`: variables with which curl, the official SDKs and `npm run admin` call the local system. */
export function shellEnvironment({ baseUrl, key, adminToken, agentId }: ShellSystem): string {
  const variables = {
    HEADGATE_URL: baseUrl,
    HEADGATE_KEY: key,
    ...(agentId !== undefined && { HEADGATE_AGENT: agentId }),
    ADMIN_TOKEN: adminToken,
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
 * Removes variables that a shell has from the file, for a system that starts in it: it would take itself for the provider,
 * and the token of another folder for its own.
 */
export function dropShellEnvironment(environment: NodeJS.ProcessEnv): void {
  const { HEADGATE_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY } = environment
  if (HEADGATE_KEY !== undefined && [OPENAI_API_KEY, ANTHROPIC_API_KEY].includes(HEADGATE_KEY)) {
    delete environment.ADMIN_TOKEN
  }
  for (const provider of ['OPENAI', 'ANTHROPIC']) {
    const key = environment[`${provider}_API_KEY`]
    if (key === undefined || key !== environment.HEADGATE_KEY) continue
    delete environment[`${provider}_API_KEY`]
    delete environment[`${provider}_BASE_URL`]
  }
}
