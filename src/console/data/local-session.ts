const NAME = 'headgate.local'

/** Whether this browser last signed in with the start token of a local system, so that it can become other members. */
export const isLocalSession = (): boolean => localStorage.getItem(NAME) === 'yes'

/** Remembers how this browser signed in. */
export function rememberLocalSession(isLocal: boolean): void {
  if (isLocal) localStorage.setItem(NAME, 'yes')
  else localStorage.removeItem(NAME)
}
