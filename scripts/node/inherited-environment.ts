/** The variables that a child gets from this process's environment; never secrets. */
export function inheritedEnvironment(): NodeJS.ProcessEnv {
  const names = [
    'PATH',
    'HOME',
    'USER',
    'TMPDIR',
    'TEMP',
    'TMP',
    'NODE_COMPILE_CACHE',
    'LANG',
    'TZ',
    'SYSTEMROOT',
    'APPDATA',
    'COMSPEC',
    // A clock that tests have moved is that of all processes (test/harness/moved-clock).
    'LD_PRELOAD',
    'MOVED_CLOCK_SECONDS',
  ]
  return Object.fromEntries(
    names.filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]]),
  )
}
