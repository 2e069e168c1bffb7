const PREFIX = 'headgate.draft.'

/** What this browser has kept under a name; null for nothing, and for what is no JSON. */
export function readKept<Draft>(name: string): Draft | null {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name) ?? 'null') as Draft | null
  } catch {
    return null
  }
}

/** Keeps a draft in this browser until its user signs out; null forgets it. */
export function keep(name: string, draft: object | null): void {
  if (draft === null) localStorage.removeItem(PREFIX + name)
  else localStorage.setItem(PREFIX + name, JSON.stringify(draft))
}

/** Forgets all drafts: they can hold names that are secret, and the next user of the browser may be another. */
export function forgetDrafts(): void {
  for (const name of Object.keys(localStorage)) {
    if (name.startsWith(PREFIX)) localStorage.removeItem(name)
  }
}
