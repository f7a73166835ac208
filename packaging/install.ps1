# Installs Hearth for this user of Windows. A release fills in the three variables below:
#   irm URL/install.ps1 | iex
# Variables of the environment stand for options: HEARTH_INSTALL_FOLDER, HEARTH_NO_GPU=1, HEARTH_UNINSTALL=1;
# HEARTH_RELEASE_URL names a mirror of the release.
& {
  $ErrorActionPreference = 'Stop'
  $ProgressPreference = 'SilentlyContinue' # Windows PowerShell downloads ten times slower with its bar

  $releaseUrl = ''
  $releaseVersion = ''
  # the digest of each target's archive
  $releaseDigests = @{}

  if ($env:HEARTH_RELEASE_URL) { $releaseUrl = $env:HEARTH_RELEASE_URL }
  $folder = if ($env:HEARTH_INSTALL_FOLDER) { $env:HEARTH_INSTALL_FOLDER } else { Join-Path $env:LOCALAPPDATA 'Programs\Hearth' }
  $program = Join-Path $folder 'hearth.exe'
  # the registry has variables such as %USERPROFILE% as they were written, and they must stay so
  $environment = [Microsoft.Win32.Registry]::CurrentUser.OpenSubKey('Environment', $true)
  $paths = @($environment.GetValue('Path', '', 'DoNotExpandEnvironmentNames') -split ';' | Where-Object { $_ })
  function Set-UserPath($folders) {
    $environment.SetValue('Path', ($folders -join ';'), 'ExpandString')
    [Environment]::SetEnvironmentVariable('HEARTH_PATH', $null, 'User') # announces that variables have changed
  }

  if ($env:HEARTH_UNINSTALL) {
    Unregister-ScheduledTask -TaskName 'Hearth' -Confirm:$false -ErrorAction SilentlyContinue
    Remove-Item -Recurse -Force -ErrorAction SilentlyContinue $folder, (Join-Path $env:LOCALAPPDATA 'hearth')
    Set-UserPath ($paths | Where-Object { $_ -ne $folder })
    Write-Output "removed Hearth; models and settings stay in $HOME\.hearth"
    return
  }

  # a 32-bit or emulated PowerShell names its own processor
  $processor = (Get-CimInstance Win32_Processor | Select-Object -First 1).Architecture
  $target = switch ($processor) {
    9 { 'windows-x64' }
    12 { 'windows-arm64' }
    default { throw "processor kind $processor is not supported: x64 and arm64 are" }
  }
  $expected = $releaseDigests[$target]
  if (-not $expected) { throw "this release has no program for $target" }

  $scratch = Join-Path ([IO.Path]::GetTempPath()) "hearth-$([guid]::NewGuid())"
  New-Item -ItemType Directory $scratch | Out-Null
  try {
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
    $archive = "hearth-$releaseVersion-$target.zip"
    Write-Output "downloading $archive"
    Invoke-WebRequest -UseBasicParsing "$releaseUrl/$archive" -OutFile (Join-Path $scratch $archive)
    $found = (Get-FileHash -Algorithm SHA256 (Join-Path $scratch $archive)).Hash.ToLower()
    if ($found -ne $expected) { throw "${archive}: expected sha256 $expected, got $found" }
    Expand-Archive (Join-Path $scratch $archive) $scratch
    & (Join-Path $scratch 'hearth.exe') --version | Out-Null
    if ($LASTEXITCODE -ne 0) { throw 'the program does not run on this machine' }
    New-Item -ItemType Directory -Force $folder | Out-Null
    # a program that runs cannot be replaced, but renamed
    if (Test-Path $program) { Move-Item -Force $program (Join-Path $folder 'hearth.previous.exe') }
    Move-Item (Join-Path $scratch 'hearth.exe') $program
  } finally {
    Remove-Item -Recurse -Force $scratch
  }
  Write-Output "installed $(& $program --version) as $program"
  if ($paths -notcontains $folder) {
    Set-UserPath ($paths + $folder)
    Write-Output 'it is in PATH of new terminals'
  }
  if (-not $env:HEARTH_NO_GPU) {
    & $program update --gpu
    if ($LASTEXITCODE -ne 0) { Write-Output 'without the GPU library models run on the CPU; later: hearth update --gpu' }
  }
  Write-Output "start it with: $program serve"
}
